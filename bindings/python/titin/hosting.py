"""Python functions as instances, each on a thread of this process."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from titin import _core
from titin.errors import Error, UsageError, is_echo, last_lines

# How long threads are waited for once the run has failed and the command has ended, in seconds.
_GRACE = 5.0


class Description(Protocol):
    """What can be written as yMMSL, such as :class:`titin.model.Model`."""

    def text(self, *, folder: Path | None = None) -> str:
        """The description as yMMSL; relative paths of programs begin in ``folder``."""


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
    opens its own by ``titin.Instance(...)``.

    Each function runs on a thread of its own, so in pure Python one at a time; NumPy and waits let others go on. This
    waits until all have ended, and answers Ctrl-C. Raises what a function raised if the run failed by that, else
    :class:`titin.Error` with the reason; :class:`titin.UsageError` if it could not begin.
    """
    functions = dict(functions or {})
    with tempfile.TemporaryDirectory(prefix="titin-") as folder:
        command = [_command(), "run", "--json", *_files(model, Path(folder))]
        if functions:
            command += ["--hosted", ",".join(functions)]
        if run_dir is not None:
            command += ["--run-dir", os.fspath(run_dir)]
        command += ["--verbose"] * verbose + ["--trace"] * trace
        with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            troupe = _Troupe(functions)
            try:
                if functions:
                    troupe.enter(process.stdout.readline())
                end = _read(process.stdout)
                process.wait()
            except BaseException:
                # Ctrl-C most likely; the command ends what it has started, and tells our instances.
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGINT)
                process.wait()
                troupe.leave(_GRACE)
                raise
    troupe.leave(None if process.returncode == 0 else _GRACE)
    if process.returncode != 0:
        culprit = (end.get("story") or {}).get("culprit", "")
        raise troupe.raised.get(str(culprit)) or _failure(end, process.returncode)
    for raised in troupe.raised.values():
        raise raised
    return Run(Path(end["directory"]), end["seconds"], troupe.returned)


@dataclass
class _Troupe:
    """The functions and their threads."""

    functions: Mapping[str, Callable[..., Any]]
    threads: list[threading.Thread] = field(default_factory=list)
    returned: dict[str, Any] = field(default_factory=dict)
    raised: dict[str, BaseException] = field(default_factory=dict)

    def enter(self, line: str) -> None:
        """Starts a thread for each instance that the command names; none if it could not begin."""
        if not line.startswith("{"):
            return
        known = json.loads(line)
        for instance in known.get("instances", ()):
            name, component = instance["name"], instance["component"]
            function = self.functions.get(name) or self.functions.get(component)
            if function is None:
                text = f"no function for {component}; functions are given by component, as in {{'{component}': f}}"
                raise UsageError(text)
            arguments = (name, known["manager"], function)
            thread = threading.Thread(target=self._play, args=arguments, name=name, daemon=True)
            self.threads.append(thread)
            thread.start()

    def leave(self, patience: float | None) -> None:
        """Waits for the threads."""
        for thread in self.threads:
            thread.join(patience)

    def _play(self, name: str, manager: str, function: Callable[..., Any]) -> None:
        _core.place(name, manager)
        try:
            if _takes_instance(function):
                with _core.Instance() as instance:
                    self.returned[name] = function(instance)
            else:
                self.returned[name] = function()
                if not _core.opened():
                    _refuse(f"the function of {name} returned without opening its instance")
        except BaseException as raised:
            if not is_echo(raised):
                self.raised[name] = raised
            if not _core.opened():
                _refuse(last_lines(raised))
            # An instance that only the function's variables hold is let go, and fails the run.
            traceback.clear_frames(raised.__traceback__)


def _takes_instance(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    needed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(parameter.kind in needed and parameter.default is parameter.empty for parameter in parameters)


def _refuse(text: str) -> None:
    """Fails the run in place of an instance that was never opened."""
    with suppress(Error), _core.Instance() as instance:
        instance.fail(text)


def _command() -> str:
    """The titin command of this installation."""
    beside = Path(sysconfig.get_path("scripts"), "titin")
    if beside.exists():
        return str(beside)
    found = shutil.which("titin")
    if found is None:
        raise UsageError(f"the titin command is neither {beside} nor on the PATH; reinstall titin")
    return found


def _files(model: str | os.PathLike[str] | Description | Sequence[str | os.PathLike[str]], folder: Path) -> list[str]:
    """The files of a model; one that was built in Python is written first."""
    if isinstance(model, str | os.PathLike):
        return [os.fspath(model)]
    if isinstance(model, Sequence):
        return [os.fspath(file) for file in model]
    file = folder / "model.ymmsl"
    file.write_text(model.text(folder=Path.cwd()))
    return [str(file)]


def _read(stream: IO[str]) -> dict[str, Any]:
    """What the command says at its end; nothing if it could not begin."""
    text = stream.read()
    with suppress(json.JSONDecodeError):
        end = json.loads(text)
        if isinstance(end, dict):
            return end
    return {}


def _failure(end: Mapping[str, Any], code: int) -> Error:
    """What there is to say about a run that failed."""
    if not end:
        return UsageError(f"the run could not begin (exit code {code}); standard error says why")
    if end.get("outcome") == "interrupted":
        return Error(f"the run was interrupted; see {end['directory']}")
    cause = (end.get("story") or {}).get("cause", "the run failed")
    return Error(f"{cause}; see {end['directory']}")
