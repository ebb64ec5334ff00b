"""Members that fail after they have joined are started again, and their drivers send again what was not answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import HERE, MODEL, Done, titin


def run(folder: Path, members: int, how: str, by: str, ensemble: str) -> Done:
    programs = {"here": HERE, "driver": "again", "member": "fragile"}
    text = MODEL.format(**programs, members=members, how=how, by=by, ensemble=ensemble, crashes=0)
    (folder / "model.ymmsl").write_text(text)
    return titin(folder, "model.ymmsl")


def results(done: Done) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((done.directory / "instances/driver/workdir/results.json").read_text())
    return found


@pytest.mark.parametrize("by", ["slot", "any"])
@pytest.mark.parametrize("how", ["exit", "signal", "raise"])
def test_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path, how: str, by: str) -> None:
    done = run(tmp_path, 3, how, by, "{retry: 2}")
    assert done.code == 0, done.said
    assert done.end["ensembles"] == [], "none has failed for good"
    found = results(done)
    # Each member answers a message, fails at the next, answers that as its second process, fails, and goes on.
    expected = [[step, slot, [[step, slot], min(step + 1, 3)]] for step in range(4) for slot in range(3)]
    assert sorted(found["answers"]) == expected
    assert sorted(slot for slot, _ in found["told"]) == [0, 0, 1, 1, 2, 2]
    assert all(f"member micro[{slot}] has failed" in text for slot, text in found["told"])
    assert "it is started again (2 of 2) when its driver sends to it" in done.log()
    counts = {instance["name"]: instance["messages"] for instance in done.end["instances"]}
    assert counts["driver"] == 4 * 3 + 6


def test_an_answer_before_the_failure_is_received_first(tmp_path: Path) -> None:
    # The member fails idle, so the error comes with the next send, which is then made again.
    done = run(tmp_path, 2, "answer and exit", "slot", "{retry: 2}")
    assert done.code == 0, done.said
    found = results(done)
    assert [answer[:2] for answer in found["answers"]] == [[step, slot] for step in range(4) for slot in range(2)]
    assert all(answer[2][0] == answer[:2] for answer in found["answers"])


def test_a_member_that_fails_more_often_fails_for_good(tmp_path: Path) -> None:
    done = run(tmp_path, 2, "exit", "slot", "{retry: 1}")
    assert done.code == 1
    assert "ended with exit code 3" in done.said and "of 2 members of micro failed (0 allowed)" in done.said, done.said
    assert len(done.end["ensembles"][0]["failed"]) == 1
