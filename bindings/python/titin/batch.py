"""Submits a run to a batch system by PSI/J. The command ``titin run --submit`` starts this module."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psij

#: Exit codes, as those of ``titin run``.
FAILED, REFUSED, INTERRUPTED = 1, 2, 130

#: Seconds between two looks at the queue, and at the output of the job.
QUEUE_INTERVAL, OUTPUT_INTERVAL = 2, 0.5

#: The options for the name of a job. PSI/J 0.9 writes no name into its scripts.
NAME_OPTIONS = {"slurm": "job-name", "pbs": "N", "lsf": "J"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Submits the job that the arguments describe, and perhaps waits for its end. Returns the exit code."""
    options = parse(arguments)
    try:
        import psij
    except ImportError:
        return complain("--submit needs PSI/J in the Python of titin: pip install 'titin[batch]'")
    if options.system not in psij.JobExecutor.get_executor_names():
        known = ", ".join(sorted(psij.JobExecutor.get_executor_names()))
        return complain(f"PSI/J knows no batch system {options.system!r}; it knows {known}")
    try:
        executor = executor_of(options.system)
        job = psij.Job(specification(options))
        options.output.unlink(missing_ok=True)
        executor.submit(job)
    except (psij.SubmitException, OSError, ValueError, OverflowError) as error:
        return complain(f"the job was not submitted: {error}")
    print(f"submitted to {options.system} as job {job.native_id}; its output goes to {options.output}", flush=True)
    return follow(job, options.output) if options.wait else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The arguments, which ``titin run --submit`` gives."""
    parser = argparse.ArgumentParser(prog="python -m titin.batch", description=__doc__)
    parser.add_argument("system", help="the batch system, by its name in PSI/J")
    parser.add_argument("--name", required=True, help="the name of the job")
    parser.add_argument("--output", required=True, type=Path, help="the file for the output of the job")
    parser.add_argument("--nodes", type=int, default=1, help="the number of nodes")
    parser.add_argument("--cores", type=int, help="the number of cores of each node")
    parser.add_argument("--seconds", type=float, help="the time limit")
    parser.add_argument("--queue", help="the queue or partition")
    parser.add_argument("--account", help="the account to charge")
    parser.add_argument("--option", action="append", default=[], help="an option of the batch system, NAME=VALUE")
    parser.add_argument("--wait", action="store_true", help="print the output, and end with the exit code of the job")
    parser.add_argument("command", nargs="+", help="the command of the job")
    return parser.parse_args(arguments)


def executor_of(system: str) -> psij.JobExecutor:
    """The executor of PSI/J for a batch system, which looks at the queue often."""
    import psij
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig

    executor = psij.JobExecutor.get_instance(system)
    if isinstance(executor.config, BatchSchedulerExecutorConfig):
        executor.config.queue_polling_interval = QUEUE_INTERVAL
    return executor


def specification(options: argparse.Namespace) -> psij.JobSpec:
    """The job in the words of PSI/J. One process, on the first node, starts the agents of the others."""
    import psij

    attributes = psij.JobAttributes(queue_name=options.queue, account=options.account)
    if options.system in NAME_OPTIONS:
        attributes.set_custom_attribute(f"{options.system}.{NAME_OPTIONS[options.system]}", options.name)
    if options.seconds is not None:
        attributes.duration = datetime.timedelta(seconds=options.seconds)
    for option in options.option:
        name, _, value = option.partition("=")
        attributes.set_custom_attribute(f"{options.system}.{name}", value)
    # A process for each core, since launchers of MPI take the number of processes of a job as their limit.
    resources = psij.ResourceSpecV1(node_count=options.nodes, processes_per_node=options.cores or 1)
    return psij.JobSpec(
        name=options.name,
        # By a shell both outputs go to one file, in their order. PSI/J would open the file twice.
        executable="/bin/sh",
        arguments=["-c", 'exec "$0" "$@" 2>&1', *options.command],
        directory=Path.cwd(),
        stdout_path=options.output.absolute(),
        resources=resources,
        attributes=attributes,
        launcher="single",
    )


def follow(job: psij.Job, output: Path) -> int:
    """Prints the output of a job until its end. Ctrl-C and SIGTERM cancel the job. Returns the exit code of the job."""
    printed, cancelled, signals = 0, False, []
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: signals.append(number))
    while True:
        status = job.wait(datetime.timedelta(seconds=OUTPUT_INTERVAL))
        if signals and not cancelled:
            cancelled = True
            job.cancel()
        printed += copy_from(output, printed)
        if status is not None and status.final:
            break
    if cancelled:
        return INTERRUPTED
    if status.exit_code is not None:
        return int(status.exit_code)
    return complain(f"the job has ended in state {status.state}: {status.message}", FAILED)


def copy_from(file: Path, offset: int) -> int:
    """Prints what a file has behind an offset. Returns the number of bytes."""
    try:
        with file.open("rb") as stream:
            stream.seek(offset)
            fresh = stream.read()
    except FileNotFoundError:
        return 0
    # The job goes on if nobody reads any more.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(fresh)
        sys.stdout.buffer.flush()
    return len(fresh)


def complain(text: str, code: int = REFUSED) -> int:
    """Prints an error. Returns the exit code."""
    print(f"error: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
