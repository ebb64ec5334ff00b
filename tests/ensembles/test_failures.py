"""Members that fail: their driver is told, the others go on, and the run says which, how many and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import HERE, Done, titin

Study = Callable[..., Done]

HOW = {1: "exit", 3: "signal", 4: "raise"}
WHY = {1: "ended with exit code 3", 3: "SIGKILL", 4: "the pressure is negative"}


@pytest.mark.parametrize("by", ["slot", "any"])
def test_the_driver_is_told_and_the_others_go_on(study: Study, by: str) -> None:
    done = study(8, HOW, "{allow_failures: 3}", by)
    assert done.code == 0, done.said
    first, second = done.results()
    for slot in range(8):
        if slot not in HOW:
            assert (first[slot], second[slot]) == (2 * slot, 2 * slot)
            continue
        for told in (first[slot], second[slot]):
            assert (told["member"], told["slot"]) == (f"micro[{slot}]", slot)
            assert WHY[slot] in told["text"], told
    [ensemble] = done.end["ensembles"]
    assert (ensemble["component"], ensemble["members"], ensemble["allowed"]) == ("micro", 8, 3)
    failed = {member["name"]: member["why"] for member in ensemble["failed"]}
    assert set(failed) == {f"micro[{slot}]" for slot in HOW}
    for slot, why in WHY.items():
        assert why in failed[f"micro[{slot}]"]
    assert "3 of 8 members of micro failed (3 allowed)" in done.log()
    phases = {instance["name"]: instance["phase"] for instance in done.end["instances"]}
    assert phases["micro[1]"] == "failed" and phases["micro[0]"] == phases["driver"] == "done"


@pytest.mark.parametrize("how", ["exit", "signal", "raise"])
def test_the_messages_of_a_failed_member_are_counted(study: Study, how: str) -> None:
    done = study(2, {1: f"later {how}"}, "{allow_failures: 1}")
    assert done.code == 0, done.said
    sent = {instance["name"]: (instance["messages"], instance["bytes"]) for instance in done.end["instances"]}
    assert sent["micro[1]"][0] == 1 and sent["micro[1]"][1] > 0, sent
    assert sent["micro[0]"][0] == 2


def test_more_failures_than_allowed_end_the_run(study: Study) -> None:
    done = study(6, HOW, "{allow_failures: 2}")
    assert done.code == 1
    assert done.end["story"]["culprit"] in {f"micro[{slot}]" for slot in HOW}
    assert "3 of 6 members of micro failed (2 allowed):" in done.said
    assert len(done.end["ensembles"][0]["failed"]) == 3


def test_without_an_entry_one_failure_ends_the_run(study: Study) -> None:
    done = study(3, {1: "exit"}, "{at_once: 3}")
    assert done.code == 1 and done.end["story"]["culprit"] == "micro[1]"


def test_five_of_a_hundred_die(study: Study) -> None:
    how = {7: "exit", 20: "signal", 41: "raise", 42: "exit", 99: "signal"}
    done = study(100, how, "{allow_failures: 5}", "any")
    assert done.code == 0, done.said
    assert "5 of 100 members of micro failed" in done.log()
    for row in done.results():
        assert [slot for slot, found in enumerate(row) if isinstance(found, dict)] == sorted(how)
        assert all(found == 2 * slot for slot, found in enumerate(row) if slot not in how)


def test_a_member_that_crashes_before_it_joins_is_started_again(study: Study) -> None:
    done = study(4, {}, "{retry: 2}", crashes=2)
    assert done.code == 0, done.said
    assert done.results() == [[0, 2, 4, 6]] * 2 and done.end["ensembles"] == []
    assert "it is started again (2 of 2)" in done.log()


def test_a_member_that_crashes_more_often_fails(study: Study) -> None:
    done = study(2, {}, "{retry: 2, allow_failures: 2}", crashes=3)
    assert done.code == 0, done.said
    for row in done.results():
        assert all("ended with exit code 9 before it had joined" in found["text"] for found in row)


MULTICAST = """\
ymmsl_version: v0.2
models:
  study:
    components:
      driver: {{description: drives, ports: {{o_i: out, s: back}}, implementation: driver}}
      other: {{description: fails, ports: {{f_init: in, o_f: out}}, implementation: micro, multiplicity: 3}}
      micro: {{description: answers, ports: {{f_init: in, o_f: out}}, implementation: twin, multiplicity: 3}}
      end: {{description: gathers, ports: {{f_init: back}}, implementation: gather}}
    conduits:
      driver.out: [{receivers}]
      micro.out: driver.back
      other.out: end.back
programs:
  driver: {{executable: python3, args: [{here}/driver.py], env: {{HOW: '{{"1": "exit"}}', BY: slot}}}}
  micro: {{executable: python3, args: [{here}/member.py]}}
  twin: {{executable: python3, args: [{here}/member.py], env: {{WELL: '1'}}}}
  gather: {{executable: python3, args: [{here}/gather.py]}}
titin: {{grace: 1 s, ensemble: {{other: {{allow_failures: 1}}}}}}
"""


@pytest.mark.parametrize("receivers", ["other.in, micro.in", "micro.in, other.in"])
def test_the_other_receivers_of_a_multicast_have_each_message(tmp_path: Path, receivers: str) -> None:
    (tmp_path / "model.ymmsl").write_text(MULTICAST.format(here=HERE, receivers=receivers))
    done = titin(tmp_path, "model.ymmsl")
    assert done.code == 0, done.said
    assert done.results() == [[0, 2, 4]] * 2
    assert [member["name"] for member in done.end["ensembles"][0]["failed"]] == ["other[1]"]
