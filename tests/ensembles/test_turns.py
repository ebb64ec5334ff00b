"""``at_once`` bounds how many members' processes run at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import HERE, titin

MODEL = """\
ymmsl_version: v0.2
models:
  study:
    components:
      member: {{description: a member, ports: {{o_f: out}}, implementation: member, multiplicity: {members}}}
      driver: {{description: gathers, ports: {{f_init: back}}, implementation: driver}}
    conduits: {{member.out: driver.back}}
programs:
  driver: {{executable: python3, args: [{here}/gather.py]}}
  member: {{executable: python3, args: [{here}/turn.py]{env}}}
titin: {{ensemble: {{member: {{at_once: {at_once}, allow_failures: {failures}}}}}}}
"""


def most_at_a_time(spans: list[list[float]]) -> int:
    """How many of these spans of time overlap at most."""
    ends = sorted([(start, 1) for start, _ in spans] + [(stop, -1) for _, stop in spans])
    running = [0]
    for _, change in ends:
        running.append(running[-1] + change)
    return max(running)


def run(folder: Path, members: int, at_once: int, failures: int = 0) -> list[list[float]]:
    env = ", env: {FAIL: '1'}" if failures else ""
    text = MODEL.format(members=members, at_once=at_once, here=HERE, failures=failures, env=env)
    (folder / "model.ymmsl").write_text(text)
    done = titin(folder, "model.ymmsl")
    assert done.code == 0, done.said
    spans = [json.loads(file.read_text()) for file in (done.directory / "instances").glob("member*/workdir/span.json")]
    assert len(spans) == members
    said = (done.directory / "instances/driver/stdout.txt").read_text().split()
    assert said == (["failed:", "0", "5", "10"] if failures else ["failed:"])
    assert len(done.end["ensembles"][0]["failed"] if failures else []) == failures
    return spans


def test_members_wait_for_their_turn(tmp_path: Path) -> None:
    assert most_at_a_time(run(tmp_path, 12, 3)) <= 3


def test_a_failed_member_makes_room_too(tmp_path: Path) -> None:
    # The members 0, 5 and 10 fail.
    assert most_at_a_time(run(tmp_path, 11, 1, failures=3)) == 1


WAITING = """\
ymmsl_version: v0.2
models:
  study:
    components:
      driver: {{description: drives, ports: {{o_i: out, s: back}}, implementation: driver}}
      micro: {{description: a member, ports: {{f_init: in, o_f: out}}, implementation: micro, multiplicity: 4}}
    conduits: {{driver.out: micro.in, micro.out: driver.back}}
programs:
  driver: {{executable: python3, args: [{here}/driver.py], env: {{HOW: '{{}}', BY: {by}, SENDS: '{sends}'}}}}
  micro: {{executable: python3, args: [{here}/member.py]}}
titin: {{grace: 1 s, ensemble: {{micro: {{at_once: 2, allow_failures: 4}}}}}}
"""


@pytest.mark.parametrize(("by", "sends"), [("slot", ""), ("any", "1"), ("slot", "1")])
def test_a_driver_that_waits_for_members_held_back_ends_with_a_report(tmp_path: Path, by: str, sends: str) -> None:
    # With SENDS the driver sends to the members 0 and 1 only, and waits to receive from the member 2.
    (tmp_path / "model.ymmsl").write_text(WAITING.format(here=HERE, by=by, sends=sends))
    done = titin(tmp_path, "model.ymmsl")
    assert done.code == 1
    assert "deadlock: " in done.said, done.said
    said = " ".join(done.said.split())
    if sends:
        assert "receive message 1 on back[2], for micro[2].out, which starts when another member has ended" in said, (
            said
        )
    else:
        assert "to send message 1 on out[2], for micro[2] to join the run, which starts when another member" in said, (
            said
        )
    assert "raise `at_once` under `titin: ensemble`" in said
