"""Runs of real processes that fail, and the search for processes and files left behind."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from ..conftest import TITIN, config

PROGRAMS = Path(__file__).resolve().parent / "programs"

MODEL = """\
ymmsl_version: v0.2
description: A culprit and a peer.
models:
  fault:
    components:
      culprit:
        description: fails
        ports: {{o_i: out, s: in}}
        implementation: culprit
      peer:
        description: answers
        ports: {{f_init: in, o_f: out}}
        implementation: peer
    conduits:
      culprit.out: peer.in
      peer.out: culprit.in
programs:
  culprit:
    {culprit}
  peer:
    executable: {python}
    args: [{programs}/peer.py, {folder}]
"""


#: As many instances as fit into a process: beside the culprit there is a guest.
HOST = """\
ymmsl_version: v0.2
description: A culprit and a guest in one process, and a peer.
models:
  fault:
    components:
      culprit: {{description: fails, ports: {{o_i: out, s: in}}, implementation: culprit}}
      guest: {{description: receives, ports: {{f_init: in}}, implementation: guest}}
      peer: {{description: answers, ports: {{f_init: in, o_f: out}}, implementation: peer}}
    conduits:
      culprit.out: [peer.in, guest.in]
      peer.out: culprit.in
programs:
  culprit: {culprit}
  guest: {guest}
  peer: {{executable: {python}, args: [{programs}/peer.py, {folder}]}}
"""


@dataclass
class Run:
    """A run of ``titin run``, in a folder of its own."""

    folder: Path
    process: subprocess.Popen[str]
    output: str = field(default="")

    @property
    def directory(self) -> Path:
        """The run directory."""
        return self.folder / "run"

    def wait(self) -> int:
        """Waits for the end; returns the exit code. The printed text is in ``output``."""
        self.output = self.process.communicate()[0]
        return self.process.returncode

    def await_file(self, name: str) -> Path:
        """Waits until a file with this name appears in the folder."""
        path = self.folder / name
        while not path.exists():
            assert self.process.poll() is None, self.process.communicate()[0]
            time.sleep(0.01)
        return path

    def error(self) -> str:
        """The error that ended the peer."""
        return (self.folder / "error").read_text()

    def leftovers(self) -> list[str]:
        """Processes that came from this run, as their environment shows, and files of the run that should be gone."""
        mark = f"{self.folder}/".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if mark in (entry / "environ").read_bytes():
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        seen = self.folder / "connection.json"
        if seen.exists() and meeting_place(self.secret()).exists():
            found.append(str(meeting_place(self.secret())))
        return found + [str(file) for file in self.directory.glob("connection.json*")]

    def secret(self) -> str:
        """The run's secret, as the peer saw it."""
        return str(json.loads((self.folder / "connection.json").read_text())["secret"])


def meeting_place(secret: str) -> Path:
    """The folder in the host's shared memory by which processes of a run with this secret find each other."""
    return Path("/dev/shm/titin-" + hashlib.sha256(b"titin meeting place" + bytes.fromhex(secret)).hexdigest()[:16])


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts a run. The culprit is given as lines of a program's description, or a whole model is given."""
    runs: list[Run] = []

    def begin(
        culprit: str = "", *, model: str = "", directory: Path | str = "run", arguments: Sequence[str] = ()
    ) -> Run:
        text = model or MODEL.format(culprit=culprit, python=sys.executable, programs=PROGRAMS, folder=tmp_path)
        (tmp_path / "model.ymmsl").write_text(text)
        process = subprocess.Popen(
            [TITIN, "run", "model.ymmsl", "--run-dir", tmp_path / directory, *arguments],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        runs.append(Run(tmp_path, process))
        return runs[-1]

    yield begin
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait()
        if run.process.stdout:
            run.process.stdout.close()


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """For each language, the description of the culprit's program except its arguments."""
    folder = tmp_path_factory.mktemp("culprits")

    def built(source: str, compiler: list[str], *wanted: str) -> Path:
        executable = folder / source.replace(".", "-")
        first = config("--fortran") if "--fortran" in wanted else []
        rest = config(*(word for word in wanted if word != "--fortran"))
        command = [*compiler, "-g", "-o", executable, *first, PROGRAMS / source, *rest]
        subprocess.run(command, check=True, cwd=folder)
        return executable

    c, cpp = ["cc", "-Wall", "-Wextra", "-Werror"], ["c++", "-std=c++17", "-Wall"]
    flags = ["--cflags", "--libs"]
    alone = {
        "c": built("culprit.c", c, *flags),
        "cpp": built("culprit.cpp", cpp, *flags),
        "fortran": built("culprit.f90", ["gfortran"], "--fortran", "--libs"),
    }
    hosts = {
        "c": built("hosts.c", c, *flags),
        "cpp": built("hosts.cpp", cpp, *flags),
        "fortran": built("hosts.f90", ["gfortran", "-frecursive"], "--fortran", "--libs"),
    }
    return {
        "python": f"executable: {sys.executable}\n    args: [{PROGRAMS}/culprit.py, ",
        "coroutine": f"executable: {sys.executable}\n    args: [{PROGRAMS}/hosts.py, ",
        **{language: f"executable: {program}\n    args: [" for language, program in alone.items()},
        **{
            f"{language}-{how}": f'executable: {program}\n    args: [{how}, "1", '
            for language, program in hosts.items()
            for how in ("threads", "steps")
        },
    }


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The functions of ``hosts.c`` and ``hosts.f90``, for a host to load."""
    folder = tmp_path_factory.mktemp("library")
    paths = {language: folder / f"libhosts-{language}.so" for language in ("c", "fortran")}
    flags = config("--cflags", "--libs")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", paths["c"], PROGRAMS / "hosts.c", *flags], check=True)
    sources = [*config("--fortran"), PROGRAMS / "hosts.f90", PROGRAMS / "entries.f90"]
    compiler = ["gfortran", "-frecursive", "-shared", "-fPIC", "-o", paths["fortran"]]
    subprocess.run([*compiler, *sources, *config("--libs")], check=True, cwd=folder)
    return paths
