"""Messages through a folder: without a network, in a folder that the description names, in a folder that cannot be
used."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..conftest import TITIN, may_leave
from . import cases
from .test_apart import run
from .test_media import model

for_root = pytest.mark.skipif(not may_leave(), reason="namespaces and mounts are for root")


def media(run_dir: Path) -> set[str]:
    """The media that carried the messages of a run."""
    shown = subprocess.run([TITIN, "profile", run_dir, "--json"], stdout=subprocess.PIPE, check=True).stdout
    return {conduit["medium"] for conduit in json.loads(shown)["conduits"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a description to name."""
    path = tmp_path / "shared"
    path.mkdir(0o700)
    return path


@pytest.fixture
def small(folder: Path) -> Iterator[Path]:
    """A folder in a file system with room for 256 KiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=0700", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@for_root
@pytest.mark.parametrize("who", ["sender", "receiver", "both"])
@pytest.mark.parametrize("pin", ["", "  medium: {receiver.in: file, receiver.other: file}\n"])
def test_programs_without_a_network_share_a_folder(tmp_path: Path, folder: Path, who: str, pin: str) -> None:
    # The programs find the manager and each other in the folder, and nowhere else.
    done = run(tmp_path, who, "alone", f"  folder: {folder}\n{pin}", case="a_message_is_larger_than_the_buffer")
    assert done.returncode == 0, done.stdout + done.stderr
    assert media(tmp_path / "run") == {"file"}
    assert not any(folder.iterdir())


@for_root
def test_the_death_of_a_program_without_a_network_is_told(tmp_path: Path, folder: Path) -> None:
    (case, *_) = cases.DEATHS
    done = run(tmp_path, "both", "alone", f"  folder: {folder}\n", case=case)
    assert done.returncode == 1
    assert "sender" in done.stdout + done.stderr
    assert not any(folder.iterdir())


@pytest.mark.parametrize("pin", ["", "  medium: {receiver.in: file}\n"])
def test_a_folder_of_the_description_is_empty_again(tmp_path: Path, folder: Path, pin: str) -> None:
    path = model(tmp_path, "everything_arrives_as_sent", "")
    path.write_text(f"{path.read_text()}  folder: {folder}\n{pin}")
    command = [TITIN, "run", path, "--run-dir", tmp_path / "run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # A folder in the description pins no conduit.
    assert media(tmp_path / "run") == ({"file", "shm"} if pin else {"shm"})
    assert not any(folder.iterdir())


def test_nothing_is_left_when_all_is_killed_but_the_guard(tmp_path: Path, folder: Path) -> None:
    path = model(tmp_path, "everything_arrives_as_sent", "")
    text = path.read_text().replace(f"args: [{cases.__file__},", "args: ['-c', 'import time; time.sleep(60)',")
    path.write_text(f"{text}  folder: {folder}\n  medium: {{receiver.in: file}}\n")
    with subprocess.Popen([TITIN, "run", path, "--run-dir", tmp_path / "run"], stderr=subprocess.PIPE) as manager:
        wait_for(lambda: (tmp_path / "run/connection.json").exists())
        assert any(folder.iterdir())
        os.kill(manager.pid, signal.SIGKILL)
        manager.wait()
        wait_for(lambda: not any(folder.iterdir()))
        wait_for(lambda: not (tmp_path / "run/connection.json").exists())


def wait_for(what: Callable[[], bool]) -> None:
    """Waits until a condition holds."""
    until = time.monotonic() + 30
    while not what():
        assert time.monotonic() < until, "in vain"
        time.sleep(0.05)


FILLS = """\
import contextlib
import sys
import titin
import numpy as np

role, folder = sys.argv[1:]
with titin.Instance(**{"o_i" if role == "sender" else "s": ["out" if role == "sender" else "in"]}) as instance:
    instance.reuse()
    if role == "sender":
        with contextlib.suppress(OSError), open(f"{folder}/full", "wb", buffering=0) as rest:
            while True:
                rest.write(bytes(4096))
        instance.send("out", np.random.bytes(4_000_000), timestamp=0.0)
    else:
        instance.receive("in")
"""

FULL = """\
ymmsl_version: v0.2
models:
  pair:
    components:
      sender: {{description: sends, ports: {{o_i: out}}, implementation: sender}}
      receiver: {{description: receives, ports: {{s: in}}, implementation: receiver}}
    conduits: {{sender.out: receiver.in}}
programs:
  sender: {{executable: {python}, args: ['{program}', sender, '{folder}']}}
  receiver: {{executable: {python}, args: ['{program}', receiver, '{folder}']}}
titin:
  folder: {folder}
  medium: {{receiver.in: file}}
"""


@for_root
@pytest.mark.usefixtures("folder")
def test_a_full_folder_is_named_in_the_report(tmp_path: Path, small: Path) -> None:
    (tmp_path / "fills.py").write_text(FILLS)
    text = FULL.format(python=sys.executable, program=tmp_path / "fills.py", folder=small)
    (tmp_path / "full.ymmsl").write_text(text)
    command = [TITIN, "run", tmp_path / "full.ymmsl", "--run-dir", tmp_path / "run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    told = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1, told
    assert str(small) in told and "No space left on device" in told, told


@for_root
def test_a_read_only_folder_is_named_before_anything_starts(tmp_path: Path, small: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small], check=True)
    path = model(tmp_path, "everything_arrives_as_sent", "")
    path.write_text(f"{path.read_text()}  folder: {small}\n")
    command = [TITIN, "run", path, "--run-dir", tmp_path / "run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = " ".join((done.stdout + done.stderr).split())
    assert done.returncode != 0
    assert str(small) in told and "Read-only file system" in told and "(titin: folder)" in told, told


@for_root
def test_a_program_that_does_not_see_the_folder_says_so(tmp_path: Path, folder: Path) -> None:
    path = model(tmp_path, "everything_arrives_as_sent", "")
    # The program has another folder at that path.
    hides = f"unshare --mount sh -c 'mount -t tmpfs -o mode=0700 none {folder} && exec \"$@\"' sh"
    (tmp_path / "hides.sh").write_text(f'#!/bin/sh\nexec {hides} {sys.executable} "$@"\n')
    (tmp_path / "hides.sh").chmod(0o755)
    text = path.read_text().replace(
        f"receiver:\n    executable: {sys.executable}", f"receiver:\n    executable: {tmp_path / 'hides.sh'}"
    )
    path.write_text(f"{text}  folder: {folder}\n")
    command = [TITIN, "run", path, "--run-dir", tmp_path / "run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1, told
    assert str(folder) in told and "at the same path" in told, told
