"""MUSCLE3 programs end alike on MUSCLE3 and on titin: the same exit code, and every record the same to the bit."""

from __future__ import annotations

import pytest

from .differences import DIFFERENCES
from .systems import ORIGINALS, PROGRAMS, TITIN, description, outcome

MODELS = sorted(path.stem for path in PROGRAMS.glob("*.ymmsl"))


@pytest.mark.parametrize("model", MODELS)
def test_a_model_runs_as_on_muscle3(model, tmp_path):
    path = description(model, tmp_path)
    systems = [TITIN, *ORIGINALS]
    started = [(system, system.start(path, tmp_path / system.name)) for system in systems]
    ours, *theirs = [outcome(process, tmp_path / system.name) for system, process in started]
    for system, original in zip(ORIGINALS, theirs, strict=True):
        expected = DIFFERENCES.get((model, system.name), DIFFERENCES.get((model, "both")))
        same = ours.code == original.code and ours.records == original.records
        if expected is None:
            assert ours.code == original.code, (system.name, ours.output, original.output)
            assert ours.records == original.records, (system.name, ours.output)
        else:
            assert not same, f"{model} on {system.name}: no difference is left; take it out of differences.py"
            expected.check(ours, original)
    assert any(ours.records.values()), f"no program of {model} has recorded anything:\n{ours.output}"
