"""MUSCLE3 programs end alike on MUSCLE3 and on titin: the same exit code, and every record the same to the bit."""

from __future__ import annotations

import pytest

from .differences import DIFFERENCES, NOT_RUN
from .systems import ORIGINALS, PROGRAMS, TITIN, description, outcome

MODELS = sorted(path.stem for path in PROGRAMS.glob("*.ymmsl"))


@pytest.mark.parametrize("model", MODELS)
def test_a_model_runs_as_on_muscle3(model, tmp_path):
    path = description(model, tmp_path)
    originals = [original for original in ORIGINALS if (model, original.name) not in NOT_RUN]
    started = [(system, system.start(path, tmp_path / system.name)) for system in [TITIN, *originals]]
    ours, *theirs = [outcome(process, tmp_path / system.name) for system, process in started]
    assert any(ours.records.values()), f"no program of {model} has recorded anything:\n{ours.output}"
    for original, end in zip(originals, theirs, strict=True):
        expected = DIFFERENCES.get((model, original.name))
        if expected is None:
            assert ours.code == end.code, (original.name, ours.output, end.output)
            assert ours.records == end.records, (original.name, ours.output)
        else:
            expected.check(ours, end)


def test_every_difference_is_of_a_model():
    names = {(model, original.name) for model in MODELS for original in ORIGINALS}
    assert names >= DIFFERENCES.keys() | NOT_RUN.keys()
