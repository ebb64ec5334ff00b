"""Python functions as instances: each function on a thread of this process, all coroutine functions on one thread."""

from __future__ import annotations

import ctypes
import html
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from titin import _core
from titin.calls import needed
from titin.errors import Deadlock, Error, PeerLost, UsageError, exits, is_echo, last_lines, rank

# Once the run has failed: seconds that functions have to leave their own code, and then to end. The sum is less than
# the time after which the manager ends this process by default (`titin: grace`).
_PATIENCE = 2.0
_LAST_CHANCE = 1.0


class Description(Protocol):
    """An object with a description in yMMSL, such as :class:`titin.model.Model`."""

    def text(self) -> str:
        """The description as yMMSL. Relative paths begin in the current directory."""


@dataclass(frozen=True)
class Run:
    """A run that has ended well."""

    directory: Path
    """The run directory."""
    seconds: float
    """The duration of the run."""
    returned: dict[str, Any]
    """The values that the functions returned, by instance."""

    def profile(self) -> dict[str, Any]:
        """Where the time of the run went: what ``titin profile --json`` prints.

        ``instances``, ``conduits`` and ``regions`` are lists of dictionaries, which pandas takes as they are:
        ``DataFrame(run.profile()["conduits"])``. Times are in seconds. Raises :class:`titin.Error` if the run directory
        has no profile that can be read.
        """
        found: dict[str, Any] = json.loads(self._ask("profile", "--json"))
        return found

    def results(self) -> dict[str, Path]:
        """The folder of the files that each instance has left, as ``titin: stage`` names them under ``out``."""
        folder = self.directory / "results"
        return {path.name: path for path in sorted(folder.iterdir())} if folder.is_dir() else {}

    def _repr_html_(self) -> str:
        """The page of ``titin view`` in a frame, for Jupyter. Its script reaches nothing outside of the frame."""
        page, title = self._ask("view", "--save", "-"), html.escape(f"The run in {self.directory}")
        style = "width: 100%; height: 680px; border: 1px solid #8b949e; border-radius: 8px"
        return f'<iframe sandbox="allow-scripts" title="{title}" style="{style}" srcdoc="{html.escape(page)}"></iframe>'

    def _ask(self, command: str, *options: str) -> str:
        """What a command prints about the run. Raises :class:`titin.Error` with its standard error."""
        words = [_command(), command, os.fspath(self.directory), *options]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Error(f"titin {command}: {done.stderr.strip().removeprefix('error: ')}")
        return done.stdout


def run(
    model: str | os.PathLike[str] | Description | Sequence[str | os.PathLike[str]],
    functions: Mapping[str, Callable[..., Any]] | None = None,
    *,
    run_dir: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    quiet: bool = False,
    trace: bool = False,
) -> Run:
    """Runs a model with Python functions as some of its instances, or all.

    ``model``: a yMMSL file, several (merged from left to right), or a :class:`titin.model.Model`. ``functions``: a
    function for each component named; a component with several instances runs its function once for each. The other
    components are programs, which run as with ``titin run``, and write to this process's output. A function that takes
    an argument gets an open :class:`titin.Instance` with the ports of the description. The instance is closed when the
    function returns. A function without arguments opens its own instance by ``titin.Instance(...)``. Functions made by
    ``async def`` have a :class:`titin.aio.Instance` instead, and all run on one event loop, thousands of functions if
    need be.

    Each function runs on a thread of its own. In pure Python one thread runs at a time; NumPy and waiting calls let
    other threads go on. The call returns when all functions have ended. Ctrl-C ends the run, and is raised.

    If a function has failed the run, its exception is raised (for ``sys.exit()`` :class:`titin.Error`). Otherwise
    raises :class:`titin.Deadlock` if instances waited for each other, :class:`titin.UsageError` if the run could not
    begin, else :class:`titin.Error` with the reason.

    Once a run has failed, calls of the other functions raise :class:`titin.PeerLost`. A function that makes no call for
    two seconds gets the exception in its own code. A function that does not end at all, in a long call of foreign code,
    costs the process: the manager ends the process after the grace period (``titin: grace``).

    ``quiet``: nothing is written to this process's output, as suits a notebook; why a run could not begin is in the
    exception. ``verbose``: the whole log is written.
    """
    if quiet and verbose:
        raise UsageError("quiet and verbose exclude each other: choose one of them")
    functions = dict(functions or {})
    for name, function in functions.items():
        _runs_when_called(name, function)
    files, text = _files(model)
    command = [_command(), "run", "--json", *files]
    if functions:
        command += ["--hosted", ",".join(functions)]
    if run_dir is not None:
        command += ["--run-dir", os.fspath(run_dir)]
    command += ["--verbose"] * verbose + ["--trace"] * trace
    hosted = _HostedFunctions(functions)
    code, end, errors = _call(command, text, hosted, quiet)
    if code == 0:
        hosted.join()
    else:
        hosted.stop()
        culprit = str((end.get("story") or {}).get("culprit", ""))
        if culprit in hosted.raised:
            raise _without_exit(hosted.raised[culprit], f"the function of {culprit}")
        raise _failure(end, code, text, errors)
    if hosted.raised:
        name = min(hosted.raised, key=lambda name: rank(hosted.raised[name]))
        raise _without_exit(hosted.raised[name], f"the function of {name}")
    return Run(Path(end["directory"]), end["seconds"], hosted.returned)


def _call(command: Sequence[str], text: str, hosted: _HostedFunctions, quiet: bool) -> tuple[int, dict[str, Any], str]:
    """Runs the command with the functions of this process, until the command has ended. ``text`` is its standard input.

    Returns the exit code, the command's answer, and the standard error of a quiet run, which is else this process's.
    """
    with (
        tempfile.TemporaryFile("w+") if quiet else nullcontext() as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        try:
            # The command may have refused its arguments already. Its output then tells the reason.
            with suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(text)
            begin = process.stdout.readline() if hosted.functions else ""
            hosted.begin(begin)
            end = _read(process.stdout.read() or begin)
            code = process.wait()
        except BaseException:
            # Ctrl-C most likely. The command ends the programs, and tells the instances of this process.
            while process.poll() is None:
                # A second Ctrl-C also goes to the command, which then does not wait for the programs.
                with suppress(KeyboardInterrupt):
                    process.send_signal(signal.SIGINT)
                    hosted.stop()
                    process.wait()
            hosted.stop()
            raise
        if errors is None:
            return code, end, ""
        errors.seek(0)
        return code, end, errors.read().strip()


@dataclass
class _HostedFunctions:
    """The functions of a run, and their threads."""

    functions: Mapping[str, Callable[..., Any]]
    threads: list[threading.Thread] = field(default_factory=list)
    returned: dict[str, Any] = field(default_factory=dict)
    raised: dict[str, BaseException] = field(default_factory=dict)
    complete: threading.Event = field(default_factory=threading.Event)
    """Set once all threads have started."""
    alarm: threading.Lock = field(default_factory=threading.Lock)
    """Taken by the first function that fails."""
    interrupter: threading.Thread | None = None
    """The thread that the first failed function has started, to interrupt the others."""
    interrupted: set[threading.Thread] = field(default_factory=set)
    """Threads that were interrupted; changed under ``interrupting``."""
    interrupting: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, line: str) -> None:
        """Starts a thread for each instance that the command names; none if the run could not begin."""
        if not line.startswith("{"):
            return
        known = json.loads(line)
        _import_all(light=any(map(inspect.iscoroutinefunction, self.functions.values())))
        light: list[tuple[str, str, Callable[..., Any]]] = []
        for instance in known.get("instances", ()):
            name, component = instance["name"], instance["component"]
            function = self.functions.get(name) or self.functions.get(component)
            if function is None:
                text = f"no function for {component}; functions are given by component, as in {{'{component}': f}}"
                raise UsageError(text)
            arguments = (name, known["manager"], function)
            if inspect.iscoroutinefunction(function):
                light.append(arguments)
            else:
                self._start(self._run, arguments, name)
        if light:
            self._start(self._run_coroutines, (light,), "titin.aio")
        self.complete.set()

    def _start(self, target: Callable[..., None], arguments: tuple[Any, ...], name: str) -> None:
        thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
        thread.start()
        self.threads.append(thread)

    def join(self) -> None:
        """Waits until all functions have returned."""
        for thread in self.threads:
            thread.join()

    def stop(self) -> None:
        """Waits until all functions have ended, after the run has failed; interrupts functions in code of their own."""
        self.complete.set()
        self._interrupt()
        if self.interrupter is not None:
            self.interrupter.join(_LAST_CHANCE)

    def _interrupt_once_complete(self) -> None:
        self.complete.wait()
        self._interrupt()

    def _interrupt(self) -> None:
        self._wait(_PATIENCE)
        with self.interrupting:
            # Each thread is interrupted once: a second exception might come while the function handles the first.
            for thread in set(filter(threading.Thread.is_alive, self.threads)) - self.interrupted:
                self.interrupted.add(thread)
                # The exception that a call of titin would have raised by now.
                number, kind = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(PeerLost)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(number, kind)
        self._wait(_LAST_CHANCE)

    def _wait(self, patience: float) -> None:
        end = time.monotonic() + patience
        for thread in self.threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _run(self, name: str, manager: str, function: Callable[..., Any]) -> None:
        _core.place(name, manager)
        try:
            if needed(function):
                with _core.Instance() as instance:
                    self.returned[name] = function(instance)
            else:
                self.returned[name] = function()
                if not _core.opened():
                    _refuse(_unopened(name))
                elif _core.unclosed():
                    raise UsageError(_unclosed(name))
        except BaseException as raised:
            self._note(name, raised)
            if not _core.opened():
                _refuse(last_lines(raised, _BEFORE))
            # Frees an instance that only the function's variables hold. An instance freed unclosed fails the run.
            traceback.clear_frames(raised.__traceback__)
            # Ends an instance that something else still holds: the other instances would keep waiting for it.
            _core.abandon(raised)

    def _note(self, name: str, raised: BaseException) -> None:
        # The calls of the other functions raise. Functions that make no calls are interrupted.
        if self.alarm.acquire(blocking=False):
            interrupter = threading.Thread(target=self._interrupt_once_complete, daemon=True)
            interrupter.start()
            self.interrupter = interrupter
        if not is_echo(raised):
            self.raised[name] = raised

    def _run_coroutines(self, functions: Sequence[tuple[str, str, Callable[..., Any]]]) -> None:
        import asyncio

        from titin import aio

        def hosted() -> asyncio.Task[Any] | None:
            task = asyncio.current_task()
            if task is not None:
                aio._hosts.add(task)
            return task

        async def run_one(name: str, manager: str, function: Callable[..., Any]) -> None:
            assignment = aio._Assignment(name, manager, task=hosted())
            aio._assignment.set(assignment)

            async def refuse(text: str) -> None:
                with suppress(Error):
                    async with aio.Instance() as instance:
                        instance.fail(text)

            try:
                if needed(function):
                    async with aio.Instance() as instance:
                        self.returned[name] = await function(instance)
                else:
                    self.returned[name] = await function()
                    if assignment.opened is None:
                        await refuse(_unopened(name))
                    elif assignment.unclosed() is not None:
                        raise UsageError(_unclosed(name))
            except BaseException as raised:
                self._note(name, raised)
                if assignment.opened is None:
                    await refuse(last_lines(raised, _BEFORE))
                elif (left := assignment.unclosed()) is not None:
                    # Something else may hold the instance, and the other instances would keep waiting for it.
                    await left.__aexit__(type(raised), raised, raised.__traceback__)

        async def all_of_them() -> None:
            hosted()
            await asyncio.gather(*(run_one(*function) for function in functions))

        try:
            asyncio.run(all_of_them())
        except BaseException as raised:
            # The end of the loop has cancelled the functions. Any of them may have made the task, and any of them may
            # be the culprit that the manager names.
            for name, _, _ in functions:
                if name not in self.raised or isinstance(self.raised[name], asyncio.CancelledError):
                    self._note(name, _without_exit(raised, "a task of an async function"))


def _import_all(*, light: bool) -> None:
    """Imports the modules that calls of titin import, NumPy above all, on one thread before other threads start.

    Two threads that import different modules of NumPy at once may wait for each other. Python ends the wait by giving
    one thread an incomplete module, and the import fails. ``light``: also the modules for coroutines.
    """
    for name in ("calls", "data", "fields", *["aio"] * light):
        import_module(f"titin.{name}")


#: The text for a SystemExit before the function has opened its instance.
_BEFORE = "it called {} before it opened its instance: return in its place, once the instance was opened and closed"


def _without_exit(raised: BaseException, caller: str) -> BaseException:
    """The exception of a function; a SystemExit as an error, since it would end the caller in silence."""
    if not isinstance(raised, SystemExit):
        return raised
    error = Error(f"{caller} called {exits(raised)}, which ends no function: return from it")
    error.__cause__ = raised
    return error


def _unopened(name: str) -> str:
    return f"the function of {name} returned without opening its instance"


def _unclosed(name: str) -> str:
    return f"the function of {name} returned without closing its instance; close it before, or open it by `with`"


def _refuse(text: str) -> None:
    """Fails the run in place of an instance that was never opened."""
    with suppress(Error), _core.Instance() as instance:
        instance.fail(text)


def _runs_when_called(name: str, function: Callable[..., Any]) -> None:
    """Refuses a function whose call only makes an object to be run later, such as a generator."""
    if not callable(function):
        raise UsageError(f"what runs {name} is a function; found {function!r}")
    for code in (function, type(function).__call__):
        if inspect.isasyncgenfunction(code) or (code is not function and inspect.iscoroutinefunction(code)):
            raise UsageError(
                f"what runs {name} is async, so a call does not run it; hand over a function made by async def"
            )
        if inspect.isgeneratorfunction(code):
            raise UsageError(f"the function of {name} is a generator, so a call does not run it; take its yield out")


def _command() -> str:
    """The titin command of this installation."""
    beside = Path(sysconfig.get_path("scripts"), "titin")
    if beside.exists():
        return str(beside)
    found = shutil.which("titin")
    if found is None:
        raise UsageError(f"the titin command is neither {beside} nor on the PATH; reinstall titin")
    return found


def _files(model: str | os.PathLike[str] | Description | Sequence[str | os.PathLike[str]]) -> tuple[list[str], str]:
    """The files of a model, and the text for standard input: the text of a model built in Python."""
    if isinstance(model, str | os.PathLike):
        return [os.fspath(model)], ""
    if isinstance(model, Sequence):
        return [os.fspath(file) for file in model], ""
    if not hasattr(model, "text"):
        raise UsageError(f"a model is the path of a yMMSL file, a list of paths, or a titin.model; found {model!r:.60}")
    return ["-"], model.text()


def _read(text: str) -> dict[str, Any]:
    """The command's answer at its end, or why the run could not begin; empty if the command was killed."""
    with suppress(json.JSONDecodeError):
        end = json.loads(text)
        if isinstance(end, dict):
            return end
    return {}


def _failure(end: Mapping[str, Any], code: int, text: str, errors: str) -> Error:
    """The error for a run that failed, or did not begin. ``errors`` is the standard error of a quiet run."""
    if "outcome" not in end and code < 0:
        return Error(f"the titin command was ended by {signal.Signals(-code).name}, and the run with it")
    if "problems" in end:
        return UsageError("\n\n".join(["the run could not begin", *(_problem(one, text) for one in end["problems"])]))
    if "outcome" not in end:
        return UsageError(f"the run could not begin (exit code {code}); {errors or 'standard error says why'}")
    if end.get("outcome") == "interrupted":
        return Error(f"the run was interrupted; see {end['directory']}")
    story = end.get("story") or {}
    kind = Deadlock if story.get("deadlock") else Error
    return kind(f"{story.get('cause', 'the run failed')}; see {end['directory']}")


def _problem(problem: Mapping[str, Any], text: str) -> str:
    """A problem of a description, with its place: lines of a file, or the keys of a model built in Python."""
    place = ""
    if file := problem.get("file"):
        line, column = problem.get("line"), problem.get("column")
        place = f"{file}:{line}:{column}: " if line else f"{file}: "
        if file == "-":
            place = f"{_keys(text, line)}: " if line else ""
    rest = [f"    {line}" for part in ("why", "hint") for line in (problem.get(part) or "").splitlines()]
    said = "\n".join([f"{problem['severity']}: {problem['what']}", *rest])
    if text:
        said = re.sub(r"\(line (\d+)\)", lambda line: f"({_keys(text, int(line[1]))})", said)
    return place + said


def _keys(text: str, number: int) -> str:
    """The keys that lead to a line of YAML: the keys above the line with less indentation."""
    keys: list[str] = []
    indent = sys.maxsize
    for line in reversed(text.splitlines()[:number]):
        key = line.lstrip()
        if len(line) - len(key) < indent:
            indent = len(line) - len(key)
            keys.insert(0, key.partition(": ")[0].removesuffix(":"))
    return " > ".join(keys)
