"""Runs of programs for x86-64 and programs for aarch64, which an emulator runs: the same bits as on x86-64 alone.

`make aarch64` makes what the tests need.
"""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..conftest import config
from ..mpi import conftest as mpi
from ..native import conftest as native
from ..native.conftest import Build
from .conftest import Program, compile_for_aarch64, emulated, here, run

pytestmark = pytest.mark.usefixtures("_aarch64")

HERE = Path(__file__).resolve().parent
LANGUAGES = ("c", "cpp", "f90", "py")
MEDIA = ("shm", "tcp", "file")
#: By default gcc makes one rounding of `a * b + c` for aarch64, and two for x86-64.
SAME_BITS = "-ffp-contract=off"


def cell_for_x86(folder: Path, language: str) -> Path:
    """Compiles `cell` for this machine with Open MPI."""
    if language == "py":
        return HERE / "cell.py"
    (compiler, *options), modules = mpi.COMPILERS[language]
    folder = folder / f"x86-{language}"
    folder.mkdir()
    flags = [*config("--cflags"), *(config(*modules) if modules else [])]
    command = [*mpi.wrapper(compiler, "openmpi"), *options, "-O2", SAME_BITS, *flags]
    command += [str(HERE / f"cell.{language}"), "-o", "cell", *config("--libs"), "-lm"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "cell"


def exchange(folder: Path, pairs: dict[str, tuple[Program, Program]]) -> dict[str, bytes]:
    """Runs pairs of `cell` beside each other, in one run; returns the last state of each program, as bytes."""
    ports = {
        "o_i": [f"out_{medium}" for medium in MEDIA],
        "s": [f"in_{medium}" for medium in MEDIA],
        "o_f": "last",
    }
    programs = {f"{pair}_{side}": program for pair, both in pairs.items() for side, program in zip("ab", both)}
    components: dict[str, Any] = {name: {"ports": ports, "implementation": name} for name in programs}
    components["judge"] = {"ports": {"f_init": list(programs)}, "implementation": "judge"}
    conduits = {f"{name}.last": f"judge.{name}" for name in programs}
    pins = {}
    for pair, (a, b), medium in itertools.product(pairs, ("ab", "ba"), MEDIA):
        conduits[f"{pair}_{a}.out_{medium}"] = f"{pair}_{b}.in_{medium}"
        pins[f"{pair}_{b}.in_{medium}"] = medium
    model = {
        "components": components,
        "conduits": conduits,
        "matching_timelines": {f"{pair}_a": [f"{pair}_b"] for pair in pairs},
    }
    states = folder / "states.npz"
    run(folder, "pairs", model, programs | {"judge": here(HERE / "judge.py", states)}, pins)
    with np.load(states) as loaded:
        return {name: b"".join(loaded[f"{name}.{array}"].tobytes() for array in "uwk") for name in programs}


def test_fields_of_mpi_programs_have_the_same_bits(tmp_path: Path) -> None:
    """Each language on each processor, with 1, 2 and 3 ranks, by each medium. The program of the other processor is in
    another language in two pairs of three, and has another number of ranks."""
    x86 = {language: cell_for_x86(tmp_path, language) for language in LANGUAGES}
    arm = {
        language: compile_for_aarch64(tmp_path, HERE / f"cell.{language}", "-O2", SAME_BITS, mpi=True)
        for language in LANGUAGES[:-1]
    } | {"py": HERE / "cell.py"}
    (tmp_path / "fused").mkdir()
    fused = compile_for_aarch64(tmp_path / "fused", HERE / "cell.c", "-O2", "-ffp-contract=fast", mpi=True)

    alone = {
        f"{a}_{b}": (here(x86[a], "a", "rows", launcher="openmpi"), here(x86[b], "b", "columns", launcher="openmpi"))
        for a, b in (("c", "f90"), ("cpp", "py"))
    }
    mixed = {}
    for (place, language), ranks in itertools.product(enumerate(LANGUAGES), (1, 2, 3)):
        other = LANGUAGES[(place + ranks - 1) % len(LANGUAGES)]
        a = here(x86[language], "a", "rows", ranks=ranks, launcher="openmpi")
        b = emulated(arm[other], "b", "columns", ranks=ranks % 3 + 1, launcher="mpich")
        mixed[f"{language}{a.ranks}_{other}{b.ranks}"] = (a, b)
    mixed["fused"] = (
        here(x86["c"], "a", "rows", launcher="openmpi"),
        emulated(fused, "b", "columns", launcher="mpich"),
    )

    for folder in ("alone", "mixed"):
        (tmp_path / folder).mkdir()
    on_x86 = exchange(tmp_path / "alone", alone)
    wanted = {side: on_x86[f"c_f90_{side}"] for side in "ab"}
    assert wanted["a"] != wanted["b"] and len(wanted["a"]) == len(wanted["b"]) == 13 * 7 * (8 + 4 + 4)
    assert all(state == wanted[name[-1]] for name, state in on_x86.items())
    found = exchange(tmp_path / "mixed", mixed)
    different = {name for name, state in found.items() if state != wanted[name[-1]]}
    # One rounding instead of two in one of the programs changes the bits of both.
    assert different == {"fused_a", "fused_b"}


def test_elements_of_every_type_arrive(build: Build, tmp_path: Path) -> None:
    """As arrays, loans and in structures, from and to each language on each processor."""

    def program(language: str, processor: str, side: str) -> Program:
        source = native.HERE / f"elements.{language}"
        if processor == "x86":
            return here(source if language == "py" else build("elements", language), side)
        return emulated(source if language == "py" else arm[language], side)

    arm = {language: compile_for_aarch64(tmp_path, native.HERE / f"elements.{language}") for language in LANGUAGES[:-1]}
    programs, conduits, pins = {}, {}, {}
    for (place, language), (own, other) in itertools.product(enumerate(LANGUAGES), (("arm", "x86"), ("x86", "arm"))):
        partner = LANGUAGES[(place + (own == "arm")) % len(LANGUAGES)]
        left, right = f"{language}_{own}_left", f"{partner}_{other}_right"
        programs |= {left: program(language, own, "left"), right: program(partner, other, "right")}
        conduits |= {f"{left}.out": f"{right}.in", f"{right}.out": f"{left}.in"}
        pins |= {f"{end}.in": MEDIA[place % len(MEDIA)] for end in (left, right)}
    components = {name: {"ports": {"o_i": "out", "s": "in"}, "implementation": name} for name in programs}
    assert len(programs) == 2 * 2 * len(LANGUAGES)
    run(tmp_path, "exchange", {"components": components, "conduits": conduits}, programs, pins)
