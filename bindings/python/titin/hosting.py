"""Python functions as instances: each on a thread of this process, coroutine functions all on one."""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from titin import _core
from titin.calls import needed
from titin.errors import Deadlock, Error, PeerLost, UsageError, exits, is_echo, last_lines, rank

# How long functions may take to come out of their own code once the run has failed, and then to end, in seconds. Both
# together are less than what the manager grants by default before it ends this process (`titin: grace`).
_PATIENCE = 2.0
_LAST_CHANCE = 1.0


class Description(Protocol):
    """What can be written as yMMSL, such as :class:`titin.model.Model`."""

    def text(self) -> str:
        """The description as yMMSL. Relative paths in it begin in the current directory."""


@dataclass(frozen=True)
class Run:
    """A run that has ended well."""

    directory: Path
    """Where its files are."""
    seconds: float
    """How long it took."""
    returned: dict[str, Any]
    """What the functions returned, by instance."""


def run(
    model: str | os.PathLike[str] | Description | Sequence[str | os.PathLike[str]],
    functions: Mapping[str, Callable[..., Any]] | None = None,
    *,
    run_dir: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    trace: bool = False,
) -> Run:
    """Runs a model with Python functions as some of its instances, or all.

    ``model``: a yMMSL file, several (merged from left to right), or a :class:`titin.model.Model`. ``functions``: what
    runs each component named; a component with several instances runs its function once for each. The other
    components are programs, started as by ``titin run``, whose output this has. A function that takes an argument gets
    an open :class:`titin.Instance` with the ports of the description, and it is closed for it; one that takes none
    opens its own by ``titin.Instance(...)``. Functions made by ``async def`` have a :class:`titin.aio.Instance`
    instead, and run on one event loop, thousands of them if need be.

    Each function runs on a thread of its own, so in pure Python one at a time; NumPy and waits let others go on. This
    waits until all have ended. Ctrl-C ends the run, and is raised. Raises what a function raised if the run failed by
    that (of ``sys.exit()`` :class:`titin.Error`), :class:`titin.Deadlock` if instances waited for each other, else
    :class:`titin.Error` with the reason; :class:`titin.UsageError` if it could not begin.

    Once a run has failed, calls of the other functions raise :class:`titin.PeerLost`; in one that makes none for two
    seconds it is raised where it is. A function that does not end at all, in a long call of foreign code, costs the
    process after the grace period (``titin: grace``): the manager ends it.
    """
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
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        troupe = _Troupe(functions)
        try:
            # It may have refused its arguments already, and says so.
            with suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(text)
            begin = process.stdout.readline() if functions else ""
            troupe.enter(begin)
            end = _read(process.stdout.read() or begin)
            process.wait()
        except BaseException:
            # Ctrl-C most likely; the command ends what it has started, and tells our instances.
            while process.poll() is None:
                # Who asks once more does not want to wait, and the command is told so.
                with suppress(KeyboardInterrupt):
                    process.send_signal(signal.SIGINT)
                    troupe.leave()
                    process.wait()
            troupe.leave()
            raise
    if process.returncode == 0:
        troupe.stay()
    else:
        troupe.leave()
        culprit = str((end.get("story") or {}).get("culprit", ""))
        if culprit in troupe.raised:
            raise _not_the_end(troupe.raised[culprit], culprit)
        raise _failure(end, process.returncode, text)
    if troupe.raised:
        name = min(troupe.raised, key=lambda name: rank(troupe.raised[name]))
        raise _not_the_end(troupe.raised[name], name)
    return Run(Path(end["directory"]), end["seconds"], troupe.returned)


@dataclass
class _Troupe:
    """The functions and their threads."""

    functions: Mapping[str, Callable[..., Any]]
    threads: list[threading.Thread] = field(default_factory=list)
    returned: dict[str, Any] = field(default_factory=dict)
    raised: dict[str, BaseException] = field(default_factory=dict)
    complete: threading.Event = field(default_factory=threading.Event)
    """Set once all threads have started."""
    alarm: threading.Lock = field(default_factory=threading.Lock)
    """Taken by the first function that fails."""
    herald: threading.Thread | None = None
    """What that one has started, to call the others out."""
    called: set[threading.Thread] = field(default_factory=set)
    """Threads that were called out; changed under ``calling``."""
    calling: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, line: str) -> None:
        """Starts a thread for each instance that the command names; none if it could not begin."""
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
                self._start(self._play, arguments, name)
        if light:
            self._start(self._play_light, (light,), "titin.aio")
        self.complete.set()

    def _start(self, target: Callable[..., None], arguments: tuple[Any, ...], name: str) -> None:
        thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
        thread.start()
        self.threads.append(thread)

    def stay(self) -> None:
        """Waits until all functions have returned."""
        for thread in self.threads:
            thread.join()

    def leave(self) -> None:
        """Waits until all have come to an end, as the run has failed; calls them out of code of their own."""
        self.complete.set()
        self._call_out()
        if self.herald is not None:
            self.herald.join(_LAST_CHANCE)

    def _clear(self) -> None:
        self.complete.wait()
        self._call_out()

    def _call_out(self) -> None:
        self._wait(_PATIENCE)
        with self.calling:
            # Once: a second time might come in the middle of how they end.
            for thread in set(filter(threading.Thread.is_alive, self.threads)) - self.called:
                self.called.add(thread)
                # What a call of titin would have raised by now.
                number, kind = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(PeerLost)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(number, kind)
        self._wait(_LAST_CHANCE)

    def _wait(self, patience: float) -> None:
        end = time.monotonic() + patience
        for thread in self.threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _play(self, name: str, manager: str, function: Callable[..., Any]) -> None:
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
            # An instance that only the function's variables hold is let go, and fails the run.
            traceback.clear_frames(raised.__traceback__)
            # One that is held elsewhere would keep the others waiting.
            _core.abandon(raised)

    def _note(self, name: str, raised: BaseException) -> None:
        # The others are told by their calls; those that make none are called out.
        if self.alarm.acquire(blocking=False):
            herald = threading.Thread(target=self._clear, daemon=True)
            herald.start()
            self.herald = herald
        if not is_echo(raised):
            self.raised[name] = raised

    def _play_light(self, functions: Sequence[tuple[str, str, Callable[..., Any]]]) -> None:
        import asyncio

        from titin import aio

        def hosted() -> asyncio.Task[Any] | None:
            task = asyncio.current_task()
            if task is not None:
                aio._hosts.add(task)
            return task

        async def play(name: str, manager: str, function: Callable[..., Any]) -> None:
            place = aio._Place(name, manager, task=hosted())
            aio._place.set(place)

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
                    if place.opened is None:
                        await refuse(_unopened(name))
                    elif place.unclosed() is not None:
                        raise UsageError(_unclosed(name))
            except BaseException as raised:
                self._note(name, raised)
                if place.opened is None:
                    await refuse(last_lines(raised, _BEFORE))
                elif (left := place.unclosed()) is not None:
                    # The others would wait for it, whatever holds it.
                    await left.__aexit__(type(raised), raised, raised.__traceback__)

        async def all_of_them() -> None:
            hosted()
            await asyncio.gather(*(play(*one) for one in functions))

        try:
            asyncio.run(all_of_them())
        except BaseException as raised:
            self._note(functions[0][0], raised)


def _import_all(*, light: bool) -> None:
    """Imports what calls of titin import when they need it, NumPy above all; for one thread, before there are others.

    Two threads that import different modules of NumPy at once may wait for each other. Python ends that by giving one
    of them a module that is not complete, and its import fails. Not all programs have coroutines (``light``).
    """
    for name in ("calls", "data", "fields", *["aio"] * light):
        import_module(f"titin.{name}")


#: Of a function that ends so before it has an instance.
_BEFORE = "it called {} before it opened its instance: return in its place, once the instance was opened and closed"


def _not_the_end(raised: BaseException, name: str) -> BaseException:
    """What a function has raised, if that does not end the caller in silence, perhaps with an exit code of 0."""
    if not isinstance(raised, SystemExit):
        return raised
    error = Error(f"the function of {name} called {exits(raised)}, which ends no function: return from it")
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
    """Refuses what a call only makes ready to run: nobody would run it."""
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
    """The files of a model, and what goes to standard input: the text of one that was built in Python."""
    if isinstance(model, str | os.PathLike):
        return [os.fspath(model)], ""
    if isinstance(model, Sequence):
        return [os.fspath(file) for file in model], ""
    return ["-"], model.text()


def _read(text: str) -> dict[str, Any]:
    """What the command says at its end, or why it could not begin; nothing if it was ended itself."""
    with suppress(json.JSONDecodeError):
        end = json.loads(text)
        if isinstance(end, dict):
            return end
    return {}


def _failure(end: Mapping[str, Any], code: int, text: str) -> Error:
    """What there is to say about a run that failed, or did not begin."""
    if "outcome" not in end and code < 0:
        return Error(f"the titin command was ended by {signal.Signals(-code).name}, and the run with it")
    if "problems" in end:
        return UsageError("\n\n".join(["the run could not begin", *(_problem(one, text) for one in end["problems"])]))
    if "outcome" not in end:
        return UsageError(f"the run could not begin (exit code {code}); standard error says why")
    if end.get("outcome") == "interrupted":
        return Error(f"the run was interrupted; see {end['directory']}")
    story = end.get("story") or {}
    kind = Deadlock if story.get("deadlock") else Error
    return kind(f"{story.get('cause', 'the run failed')}; see {end['directory']}")


def _problem(problem: Mapping[str, Any], text: str) -> str:
    """A problem of a description, with its place; where that was built in Python it has keys, and no lines."""
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
    """The keys that lead to a line of YAML, which are those above it that stand further left."""
    keys: list[str] = []
    indent = sys.maxsize
    for line in reversed(text.splitlines()[:number]):
        key = line.lstrip()
        if len(line) - len(key) < indent:
            indent = len(line) - len(key)
            keys.insert(0, key.partition(": ")[0].removesuffix(":"))
    return " > ".join(keys)
