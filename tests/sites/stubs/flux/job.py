"""Jobs of the stand-in. As with Flux, a job gets its number some time after it was submitted."""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class JobspecV1:
    """What a job is to run."""

    stdout: Path
    duration: float

    def __init__(self, command: list[str], tasks: int, cores: int) -> None:
        """A job of processes that all run the same command."""
        self.command, self.tasks, self.cores = command, tasks, cores

    @classmethod
    def from_command(
        cls, command: list[str], num_tasks: int, cores_per_task: int, gpus_per_task: int | None, num_nodes: int | None
    ) -> JobspecV1:
        """Checks the numbers as Flux does."""
        if num_nodes is not None and not 1 <= num_nodes <= num_tasks:
            raise ValueError("node count must not be greater than task count")
        if cores_per_task < 1:
            raise ValueError("cores per task must be an integer >= 1")
        return cls(command, num_tasks, cores_per_task)


class FluxExecutorFuture(concurrent.futures.Future[int]):
    """The exit code of a job, once it has ended."""

    def __init__(self, jobspec: JobspecV1) -> None:
        """A job that is not known yet."""
        super().__init__()
        self.jobspec = jobspec
        self.processes: list[subprocess.Popen[bytes]] = []
        self.id: int | None = None
        self.at_id: list[Callable[[FluxExecutorFuture], None]] = []
        self.at_start: list[Callable[[FluxExecutorFuture, Any], None]] = []
        self.set_running_or_notify_cancel()

    def jobid(self) -> int | None:
        """The number of the job."""
        return self.id

    def add_jobid_callback(self, call: Callable[[FluxExecutorFuture], None]) -> None:
        """Calls back when the number of the job is known."""
        self.at_id.append(call)

    def add_event_callback(self, event: str, call: Callable[[FluxExecutorFuture, Any], None]) -> None:
        """Calls back when the job begins."""
        assert event == "start"
        self.at_start.append(call)

    def run(self) -> None:
        """Runs the job from its submission to its end."""
        time.sleep(0.2)
        if os.environ.get("FLUX_STUB_REFUSES"):
            self.set_exception(OSError("the queue is closed"))
            return
        self.id = 4711
        for taken in self.at_id:
            taken(self)
        Path("flux-job.json").write_text(
            json.dumps({name: str(value) for name, value in vars(self.jobspec).items()}), "utf-8"
        )
        with self.jobspec.stdout.open("wb") as output:
            for _ in range(self.jobspec.tasks):
                self.processes.append(subprocess.Popen(self.jobspec.command, stdout=output, cwd="/"))
        for begun in self.at_start:
            begun(self, SimpleNamespace(name="start", context={}))
        codes = [process.wait() for process in self.processes]
        if not self.done():
            self.set_result(next((code for code in codes if code), 0))


class FluxExecutor:
    """Runs each job in a thread."""

    def submit(self, jobspec: JobspecV1) -> FluxExecutorFuture:
        """Submits a job."""
        future = FluxExecutorFuture(jobspec)
        jobs.append(future)
        threading.Thread(target=future.run, daemon=True).start()
        return future


jobs: list[FluxExecutorFuture] = []


def cancel_async(_: object, jobid: int) -> None:
    """Cancels a job."""
    for future in jobs:
        if future.id == jobid:
            future.set_exception(RuntimeError("job exception: type=cancel"))
            for process in future.processes:
                process.terminate()
