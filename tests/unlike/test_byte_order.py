"""titin does not compile for a big-endian processor: numbers would arrive wrong, and nothing would say so."""

from __future__ import annotations

import subprocess

import pytest

from ..conftest import ROOT

SENTENCE = "titin is for little-endian processors: the elements of arrays travel as they are in memory"


@pytest.mark.parametrize("big", [True, False])
def test_a_compiler_for_big_endian_says_why_it_stops(big: bool) -> None:
    """The compiler is that of this machine, told of another order, so that it needs no library of another processor."""
    order = ["-Aexplicit_builtin_cfgs_in_flags", "--cfg", 'target_endian="big"'] if big else []
    command = ["rustc", *order, "--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "-o", "/dev/null"]
    done = subprocess.run([*command, "crates/wire/src/lib.rs"], cwd=ROOT, capture_output=True, text=True, check=False)
    # The crates that this one needs are not there, so that the compiler stops in any case.
    assert done.returncode != 0
    assert (SENTENCE in done.stderr) == big, done.stderr
