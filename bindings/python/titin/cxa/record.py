"""Runs a CxA file by ``ruby``, and reads what it has said."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

Value = None | bool | int | float | str | list["Value"]

PRELUDE = Path(__file__).parent / "prelude.rb"


class CxaError(Exception):
    """A CxA file that cannot be converted; the text says why, and what to do."""


@dataclass(frozen=True)
class Component:
    """An instance or a terminal."""

    name: str
    kind: str
    """``instance``, ``native``, ``mpi``, ``python``, ``matlab`` or ``terminal``: how the file has made it."""
    java_class: str
    properties: dict[str, Value]


@dataclass(frozen=True)
class Coupling:
    """A conduit from one port to one other."""

    sender: str
    out: str
    receiver: str
    into: str
    filters: list[str]


@dataclass(frozen=True)
class Record:
    """What a CxA file has said."""

    components: list[Component]
    couplings: list[Coupling]
    properties: dict[str, Value] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def recorded(path: Path, ruby: str, limit: float) -> Record:
    """Runs the file. Raises CxaError if that fails, or takes longer than the limit in seconds."""
    if not path.is_file():
        raise CxaError(f"{path}: there is no such file")
    if not shutil.which(ruby):
        raise CxaError(
            f"{path} is a Ruby script, and there is no command {ruby!r} to run it: install Ruby (apt install ruby, or "
            "dnf install ruby), or name the command by --ruby"
        )
    with tempfile.TemporaryDirectory(prefix="titin-cxa-") as folder:
        record = Path(folder) / "record.json"
        run(path, [ruby, str(PRELUDE), str(path), str(record)], limit)
        if not record.exists():
            raise CxaError(f"{path} has ended before its last line, by exit or abort: see what it says above")
        return read(record)


def run(path: Path, command: list[str], limit: float) -> None:
    """Runs the script in a session of its own, so that what it has started ends with it when the time is over."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        raise CxaError(
            f"{path} has not ended within {limit:g} s: allow more by --timeout, or see where it waits"
        ) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if code != 0:
        raise CxaError(f"{path}: ruby has ended with exit code {code}: see what it says above")


def read(record: Path) -> Record:
    """The record that the prelude has written."""
    try:
        said = json.loads(record.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CxaError(f"what the file has said cannot be read: {error}") from None
    return Record(
        [Component(it["name"], it["kind"], one_line(it["class"]), it["properties"]) for it in said["components"]],
        [Coupling(it["sender"], it["out"], it["receiver"], it["in"], it["filters"]) for it in said["couplings"]],
        said["global"],
        [one_line(note) for note in said["notes"]],
    )


def one_line(text: str) -> str:
    """The text for a comment."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
