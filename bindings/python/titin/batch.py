"""Submits a job to a batch system by PSI/J: a run, or an agent of a run.

The commands ``titin run --submit`` and ``titin agent --submit`` start this module.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psij

#: Exit codes, as those of ``titin run``.
FAILED, REFUSED, INTERRUPTED = 1, 2, 130

#: Seconds between two looks at the queue, and between two looks later than so many seconds after the submission. The
#: end of a run waits 15 s for the end of the jobs of its agents.
QUEUE_INTERVAL, LATER_QUEUE_INTERVAL, LATER = 2, 10, 60

#: Seconds between two looks at the output of the job.
OUTPUT_INTERVAL = 0.5

#: After so many seconds in the queue the user is told that the job is there.
QUEUE_NOTICE = 10

#: How many bytes of the output are read at once.
PIECE = 1 << 20

#: How many seconds the processes of a job of this host may take to end once they are killed.
LOCAL_KILL_TIME = 10

#: How many seconds the batch system may give no answer, before PSI/J takes the job for failed.
QUEUE_SILENCE = 300

#: The options for the name of a job. PSI/J 0.9 writes no name into its scripts.
NAME_OPTIONS = {"slurm": "job-name", "pbs": "N", "lsf": "J"}

#: How many seconds Flux may take to tell the number of a job.
SUBMISSION_TIME = 60

#: A shell that runs the job's command in a folder, of which PSI/J does not tell Flux. Both outputs go to one file, in
#: their order; PSI/J would open the file twice.
RUN = 'cd "$0" && exec "$@" 2>&1'

#: The same for an agent, in any folder. The command reads the token, whose file is removed once it is open.
RUN_WITH_TOKEN = 'exec 2>&1 <"$0" && rm "$0" && exec "$@"'


def main(arguments: Sequence[str] | None = None) -> int:
    """Submits the job that the arguments describe, and perhaps waits for its end. Returns the exit code."""
    options = parse(arguments)
    try:
        import psij
    except ImportError:
        here = os.uname().nodename
        return complain(f"--submit needs PSI/J in the Python of titin on {here}: pip install 'titin[batch]'")
    if options.system not in psij.JobExecutor.get_executor_names():
        known = ", ".join(sorted(psij.JobExecutor.get_executor_names()))
        return complain(f"PSI/J knows no batch system {options.system!r}; it knows {known}")
    try:
        executor = executor_of(options.system)
    except ValueError as error:
        # That for Flux, for instance, needs the Python package that comes with Flux.
        return not_submitted(f"PSI/J cannot load its executor for {options.system}: {error.__cause__ or error}")
    if not options.token:
        return submit(executor, options, note_signals(signal.SIGINT, signal.SIGTERM) if options.wait else None)
    token = sys.stdin.readline()
    if not token.strip():
        return not_submitted("no token has come on standard input")
    # From here on a signal does not end this process, which would leave the token on disk.
    signals = note_signals(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    try:
        folder = folder_with_token(executor, options.name, token)
    except OSError as error:
        return not_submitted(str(error))
    try:
        options.output = folder / "output.txt"
        return submit(executor, options, signals)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The arguments, which ``titin run --submit`` or ``titin agent --submit`` gives."""
    parser = argparse.ArgumentParser(prog="python -m titin.batch", description=__doc__)
    parser.add_argument("system", help="the batch system, by its name in PSI/J")
    parser.add_argument("--name", required=True, help="the name of the job")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--output", type=Path, help="the file for the output of the job, which is a run")
    kind.add_argument(
        "--token", action="store_true", help="the job is an agent, and reads the token that is on standard input here"
    )
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
    """The executor of PSI/J for a batch system."""
    import psij

    executor = psij.JobExecutor.get_instance(system)
    look_at_queue_every(QUEUE_INTERVAL, executor)
    return executor


def look_at_queue_every(seconds: int, executor: psij.JobExecutor) -> None:
    """Sets how often the executor of a batch system looks at the queue. Each look runs a command such as `squeue`."""
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig

    if isinstance(executor.config, BatchSchedulerExecutorConfig):
        executor.config.queue_polling_interval = seconds
        executor.config.queue_polling_error_threshold = QUEUE_SILENCE // seconds


def folder_with_token(executor: psij.JobExecutor, name: str, token: str) -> Path:
    """Makes a folder for the job of an agent, with the token in a file that only this user can read.

    The folder is beside PSI/J's own files, which all hosts of a cluster must share anyway.
    """
    parent = executor.config.work_directory / "titin"
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
    try:
        file = os.open(folder / "token", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w") as stream:
            stream.write(token)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def submit(executor: psij.JobExecutor, options: argparse.Namespace, signals: list[int] | None) -> int:
    """Submits the job, and follows it if the signals to end it are noted. Returns the exit code."""
    import psij

    try:
        job = psij.Job(specification(options))
        options.output.unlink(missing_ok=True)
        with signals_held(options.system):
            executor.submit(job)
            if job.native_id is None:
                job.wait(datetime.timedelta(seconds=SUBMISSION_TIME), [psij.JobState.QUEUED])
        if job.native_id is None:
            return not_submitted(job.status.message or f"{options.system} has not answered for {SUBMISSION_TIME} s")
    except (psij.SubmitException, OSError, ValueError, OverflowError) as error:
        return not_submitted(reason(error, options))
    if not options.token:
        say(f"submitted to {options.system} as job {job.native_id}; its output goes to {options.output}\n".encode())
    if signals is None:
        return 0
    try:
        return follow(job, executor, options, signals)
    except OSError as error:
        if options.token:
            cancel(job, options.system)
        return complain(f"job {job.native_id} of {options.system} cannot be followed: {error}", FAILED)


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
    directory = Path.cwd()
    run = [RUN, str(directory)]
    if options.token:
        directory = options.output.parent
        run = [RUN_WITH_TOKEN, str(directory / "token")]
    return psij.JobSpec(
        name=options.name,
        executable="/bin/sh",
        arguments=["-c", *run, *options.command],
        directory=directory,
        stdout_path=options.output.absolute(),
        resources=resources(options),
        attributes=attributes,
        launcher="single",
    )


def resources(options: argparse.Namespace) -> psij.ResourceSpecV1:
    """The nodes and cores of a job.

    Raises:
        ValueError: What PSI/J does not hand on to Flux is asked for.
    """
    import psij

    if options.system != "flux":
        # A process for each core, since launchers of MPI take the number of processes of a job as their limit.
        return psij.ResourceSpecV1(node_count=options.nodes, processes_per_node=options.cores or 1)
    if options.nodes > 1:
        raise ValueError("PSI/J would start the command on each node of a job of Flux: ask for one node")
    given = {"queue": options.queue, "account": options.account, "batch option": options.option}
    lost = ", ".join(name for name, value in given.items() if value)
    if lost:
        raise ValueError(f"PSI/J does not hand on to Flux: {lost}. Leave it out, or give it a default in Flux")
    return psij.ResourceSpecV1(process_count=1, cpu_cores_per_process=options.cores or 1)


def note_signals(*numbers: int) -> list[int]:
    """From now on these signals do nothing but add their number to this list."""
    signals: list[int] = []
    for number in numbers:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: signals.append(number))
    return signals


@contextlib.contextmanager
def signals_held(system: str) -> Iterator[None]:
    """Holds signals back, also from commands that are started meanwhile.

    A signal that ends `sbatch` would lose the number of a job that is in the queue already. The processes of a local
    job must not inherit this.
    """
    held = set() if system == "local" else {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def follow(job: psij.Job, executor: psij.JobExecutor, options: argparse.Namespace, signals: list[int]) -> int:
    """Prints the output of a job until its end. A signal cancels the job. Returns the exit code of the job.

    A run on this host is told to end by the first signal, and is cancelled by the next one: PSI/J would kill it.

    For an agent the state of the job is printed too. Its job is also cancelled if nobody reads any more while the job
    is queued. Once the job has begun, the agent ends by itself when the run is over.
    """
    import psij

    # The signals up to this number have told a run on this host to end.
    told = 0
    printed, cancelled, state = 0, False, None
    begun = time.monotonic()
    while True:
        if time.monotonic() > begun + LATER:
            look_at_queue_every(LATER_QUEUE_INTERVAL, executor)
        if options.token and state != job.status.state and not job.status.final:
            state = job.status.state
            say(f"job {job.native_id} of {options.system} is {state.name.lower()}\n".encode())
        if state is None and job.status.state == psij.JobState.QUEUED and time.monotonic() > begun + QUEUE_NOTICE:
            state = job.status.state
            say(f"job {job.native_id} of {options.system} is queued\n".encode())
        status = job.wait(datetime.timedelta(seconds=OUTPUT_INTERVAL))
        if signals and not told and options.system == "local" and not options.token:
            told = len(signals) if tell_to_end(job, options.command[1:]) else 0
        if not cancelled and (len(signals) > told or (options.token and is_queued(options) and is_deserted())):
            cancelled = cancel(job, options.system)
        printed += copy_from(options.output, printed)
        if status is not None and status.final:
            break
    if cancelled:
        say(f"job {job.native_id} of {options.system} is cancelled\n".encode())
        return INTERRUPTED
    if status.exit_code is not None:
        # A signal is a negative code, and for a shell 128 more than its number.
        return int(status.exit_code) if status.exit_code >= 0 else 128 - int(status.exit_code)
    if options.system == "flux" and status.state == psij.JobState.COMPLETED:
        return 0
    reason = f": {status.message}" if status.message else ""
    return complain(f"the job has ended in state {status.state.name.lower()}{reason}", FAILED)


def tell_to_end(job: psij.Job, arguments: Sequence[str]) -> bool:
    """Sends SIGTERM to the command of a local job, which has these arguments. Returns whether it runs."""
    import psutil

    try:
        launcher = psutil.Process(int(job.native_id or 0))
        line, children = launcher.cmdline(), launcher.children()
    except psutil.Error:
        return False
    is_told = False
    for child in children:
        # A child may end meanwhile.
        with contextlib.suppress(psutil.Error):
            words = child.cmdline()
            # The launcher of PSI/J has also a copy of itself as a child, which writes its log.
            if words[-len(arguments) :] == arguments and words != line:
                child.terminate()
                is_told = True
    return is_told


def is_queued(options: argparse.Namespace) -> bool:
    """Whether the job of an agent has not begun. The job removes the token when it begins."""
    return bool((options.output.parent / "token").exists())


def is_deserted() -> bool:
    """Whether nobody reads standard output any more, as when the connection of ssh is gone."""
    output = select.poll()
    output.register(sys.stdout, 0)
    return bool(output.poll(0))


def cancel(job: psij.Job, system: str) -> bool:
    """Cancels a job of a batch system. Returns whether the job is over, or will soon be."""
    import psij

    try:
        with signals_held(system):
            job.cancel()
    except KeyError:
        # PSI/J does not know a local job any more that has ended.
        return True
    except (psij.SubmitException, OSError) as error:
        complain(f"job {job.native_id} is not cancelled: {error}")
        return False
    deadline = time.monotonic() + LOCAL_KILL_TIME
    while system == "local" and Path(f"/proc/{job.native_id}").exists():
        # PSI/J calls the job cancelled before it has killed its processes.
        if time.monotonic() > deadline:
            complain(f"process {job.native_id} of the cancelled job has not ended on {os.uname().nodename}")
            break
        time.sleep(0.05)
    return True


def copy_from(file: Path, offset: int) -> int:
    """Prints what a file has behind an offset. Returns the number of bytes."""
    count = 0
    with contextlib.suppress(FileNotFoundError), file.open("rb") as stream:
        stream.seek(offset)
        while fresh := stream.read(PIECE):
            say(fresh)
            count += len(fresh)
    return count


def say(text: bytes) -> None:
    """Prints a text. A run goes on if nobody reads any more."""
    with contextlib.suppress(BrokenPipeError):
        # Python's own stream would keep what it cannot write, and fail at the end of the process.
        while text:
            text = text[os.write(sys.stdout.fileno(), text) :]


def not_submitted(why: str) -> int:
    """Says why a job was not submitted. Returns the exit code."""
    return complain(f"the job was not submitted on {os.uname().nodename}: {why}")


def reason(error: Exception, options: argparse.Namespace) -> str:
    """Why a job was not submitted, and what to do if the command of the batch system is missing."""
    if not isinstance(error, FileNotFoundError) or os.path.isabs(error.filename or "/"):
        return str(error)
    remedy = "name the way to such a host as `via`" if options.token else "give the command on such a host"
    return (
        f"there is no command {error.filename}. Jobs for {options.system} are submitted where this command is, "
        f"such as on a login node: {remedy}"
    )


def complain(text: str, code: int = REFUSED) -> int:
    """Prints an error. Returns the exit code."""
    print(f"error: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
