"""The same cases on every medium: threads of one process (inproc), and processes of their own (shm and tcp)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import titin

from ..conftest import TITIN
from . import cases

MODEL = """\
ymmsl_version: v0.2
description: A sender and a receiver.
models:
  pair:
    components:
      sender:
        description: sends
        ports: {sends}
        implementation: sender
      receiver:
        description: receives
        ports: {receives}
        implementation: receiver
    conduits:
      sender.out: {filter}receiver.in
      sender.other: receiver.other
programs:
  sender:
    executable: {python}
    args: [{program}, {case}, sender]
  receiver:
    executable: {python}
    args: [{program}, {case}, receiver]
titin:
  buffer: {{default: {{messages: {messages}, bytes: {bytes}}}}}
"""


def yaml(ports: dict[str, list[str]]) -> str:
    """Ports as a line of yMMSL."""
    return "{" + ", ".join(f"{operator}: {' '.join(names)}" for operator, names in ports.items()) + "}"


def model(folder: Path, case: str, filter: str) -> Path:
    """Writes the model of a case."""
    path = folder / "pair.ymmsl"
    path.write_text(
        MODEL.format(
            filter=filter,
            sends=yaml(cases.ports(case, "sender")),
            receives=yaml(cases.ports(case, "receiver")),
            case=case,
            python=sys.executable,
            program=cases.__file__,
            messages=cases.MESSAGES,
            bytes=cases.BYTES,
        )
    )
    return path


def roles(case: str) -> dict[str, Callable[[titin.Instance], None]]:
    """The two roles of a case, as functions for threads."""
    return {role: partial(cases.play, case, role) for role in ("sender", "receiver")}


@pytest.mark.parametrize("case", cases.CASES)
def test_inproc(tmp_path: Path, case: str) -> None:
    path = model(tmp_path, case, cases.CASES[case])
    titin.run(path, roles(case), run_dir=tmp_path / "run")


def pin(path: Path, medium: str) -> None:
    """Pins all conduits of a model to a medium."""
    pins = f"{{receiver.in: {medium}, receiver.other: {medium}}}"
    path.write_text(path.read_text() + f"  medium: {pins}\n")


@pytest.mark.parametrize("medium", ["shm", "tcp", "file"])
@pytest.mark.parametrize("case", cases.CASES)
def test_processes(tmp_path: Path, case: str, medium: str) -> None:
    path = model(tmp_path, case, cases.CASES[case])
    pin(path, medium)
    done = subprocess.run(
        [TITIN, "run", path, "--run-dir", tmp_path / "run"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


#: The case whose conduits are pinned.
PINNED = "everything_arrives_as_sent"


def pinned(folder: Path, medium: str, other: str = "") -> Path:
    """Writes the case's model with one of its conduits pinned to a medium, or both."""
    path = model(folder, PINNED, "")
    second = f", receiver.other: {other}" if other else ""
    path.write_text(path.read_text() + f"  medium: {{receiver.in: {medium}{second}}}\n")
    return path


def test_a_pin_that_can_be_kept_is(tmp_path: Path) -> None:
    titin.run(pinned(tmp_path, "inproc"), roles(PINNED), run_dir=tmp_path / "threads")
    for medium, other in [("shm", ""), ("tcp", ""), ("shm", "tcp"), ("tcp", "shm"), ("file", ""), ("file", "tcp")]:
        path, run = pinned(tmp_path, medium, other), tmp_path / f"{medium}{other}"
        done = subprocess.run([TITIN, "run", path, "--run-dir", run], capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        profile = json.loads(
            subprocess.run([TITIN, "profile", run, "--json"], stdout=subprocess.PIPE, check=True).stdout
        )
        media = {conduit["to"]: conduit["medium"] for conduit in profile["conduits"]}
        assert media == {"receiver.in": medium, "receiver.other": other or "shm"}


def test_links_have_as_many_streams_as_said(tmp_path: Path) -> None:
    path = model(tmp_path, PINNED, "")
    links = "{default: {streams: 2, pacing: 1 GB}, receiver: {streams: 3, send_buffer: 1 MiB}, sender: {streams: 1}}"
    path.write_text(path.read_text() + f"  medium: {{receiver.in: tcp}}\n  links: {links}\n")
    done = subprocess.run([TITIN, "run", path, "--run-dir", tmp_path / "run"], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    profile = subprocess.run([TITIN, "profile", tmp_path / "run", "--json"], stdout=subprocess.PIPE, check=True).stdout
    streams = {conduit["to"]: conduit["streams"] for conduit in json.loads(profile)["conduits"]}
    assert streams == {"receiver.in": 3, "receiver.other": None}


def test_a_pin_that_cannot_be_kept_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(titin.ConnectionFailed, match=r"is pinned to tcp .* is reached by inproc"):
        titin.run(pinned(tmp_path, "tcp"), roles(PINNED), run_dir=tmp_path / "threads")
    done = subprocess.run(
        [TITIN, "run", pinned(tmp_path, "inproc"), "--run-dir", tmp_path / "run"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, "known before anything is started"
    assert "cannot be pinned to inproc" in done.stdout + done.stderr


@pytest.mark.parametrize("medium", ["shm", "tcp", "file"])
@pytest.mark.parametrize("case", cases.DEATHS)
def test_when_the_sender_dies(tmp_path: Path, case: str, medium: str) -> None:
    path = model(tmp_path, case, "")
    pin(path, medium)
    done = subprocess.run(
        [TITIN, "run", path, "--run-dir", tmp_path / "run"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "SIGKILL" in done.stdout + done.stderr
    said = (tmp_path / "run" / "instances" / "receiver" / "stderr.txt").read_text()
    assert "PeerLost" in said and "AssertionError" not in said, said
    if case == "a_view_outlives_its_sender":
        assert "holds" in (tmp_path / "run" / "instances" / "receiver" / "stdout.txt").read_text()
