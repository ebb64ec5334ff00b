"""Programs for MUSCLE3's Fortran interface, beside others in C++, get what MUSCLE3's own library gives, to the bit."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ...conftest import TITIN
from ..cpp.conftest import Build, Original
from ..cpp.models import MODELS, TIME_LIMIT, run
from ..cpp.test_programs import pair
from .conftest import Compile

#: The programs of each model that are in Fortran here; the others are in C++.
IN_FORTRAN = {
    "values": ["echo"],
    "settings": ["probe", "receiver"],
    "resizing": ["resizer", "receiver"],
    "members": ["driver", "balancer", "worker"],
    "checkpoints": ["keeper"],
}

#: Errors of these calls stop a program in Fortran, which has no arguments for them there.
UNCAUGHT = re.compile(r"(too|twice|load|save|save_final)\b.*: error")


def comparable(text: str, program: str) -> list[str]:
    """What Fortran can write too: no storage order of grids, and no errors of the calls of checkpoints."""
    lines = [re.sub(r"\) (first|last|-)( |$)", r")\2", line) for line in text.splitlines()]
    return [line for line in lines if not (program == "keeper" and UNCAUGHT.search(line))]


@pytest.mark.parametrize("name", MODELS)
def test_as_the_original(name: str, build: Build, build_fortran: Compile, original: Original, tmp_path: Path) -> None:
    model, chosen = MODELS[name], IN_FORTRAN[name]
    commands = {program: [str((build_fortran if program in chosen else build)(program))] for program in model.programs}
    got, wanted = run(model, commands, tmp_path), original(name)
    assert got.keys() == wanted.keys()
    for instance, lines in got.items():
        program = instance.partition("[")[0]
        assert comparable(lines, program) == comparable(wanted[instance], program), instance


def test_languages_mixed(build: Build, build_fortran: Compile, original: Original, tmp_path: Path) -> None:
    """Two workers of a component cannot differ, but a balancer in C++ has a driver and workers in Fortran."""
    model = MODELS["members"]
    commands = {"driver": build_fortran("driver"), "balancer": build("balancer"), "worker": build_fortran("worker")}
    got = run(model, {name: [str(program)] for name, program in commands.items()}, tmp_path)
    assert got == original("members")


@pytest.mark.parametrize("root", [0, 2])
def test_ranks(root: int, build: Build, build_fortran: Compile, tmp_path: Path) -> None:
    model = pair("ranks", str(root), sender="partner")
    text = model.text({"partner": [str(build("partner"))], "ranks": [str(build_fortran("ranks"))]})
    text = text.replace("  ranks:\n", "  ranks:\n    execution_model: openmpi\n")
    (tmp_path / "model.ymmsl").write_text(text + "resources: {tested.tested: {mpi_processes: 3}}\n")
    command = [TITIN, "run", "--run-dir", "run", "model.ymmsl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=TIME_LIMIT)
    assert done.returncode == 0, done.stderr
    received = (tmp_path / "run/instances/sender/stdout.txt").read_text().splitlines()
    assert [line.split()[-1] for line in received[::2]] == ["0" * 16, "000000000000f83f", "0000000000000840"]
    assert all(line.endswith(half * 4) for line, half in zip(received[1::2], HALVES, strict=True))


#: 0.5, 1.5 and 2.5, as bytes.
HALVES = ["000000000000e03f", "000000000000f83f", "0000000000000440"]
