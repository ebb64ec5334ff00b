"""A site whose clock is an hour off: the relays connect, and a run over both sites is as ever."""

from __future__ import annotations

import re
from datetime import datetime

import pytest

from ..sites.conftest import clock_off
from .conftest import Sites, expected_digests, wait_until

STEPS, MOST = 60, 200_000


@pytest.mark.parametrize("hours", [1, -1], ids=["ahead", "behind"])
def test_a_site_whose_clock_is_off(sites: Sites, monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    """The relay, the agent and the program of south have another time than those of north. The line breaks once."""
    clock = clock_off(hours, sites.folder)
    relay = sites.south
    relay.kill()
    with monkeypatch.context() as patch:
        for name, value in clock.items():
            patch.setenv(name, value)
        relay.start()
    wait_until(lambda: sites.north.peer("south")["connected"], "the relays do not connect")
    begins = re.findall(r"^(\S+) +INFO relay site", relay.log, re.MULTILINE)
    before, after = map(datetime.fromisoformat, begins)
    assert round((after - before).total_seconds() / 3600) == hours

    settings = ", ".join(f'"{name}={value}"' for name, value in clock.items())
    sites.write(STEPS, MOST, pause=0.03, start=f"[env, {settings}]", more="  heartbeat: 5 s")
    program = sites.folder / "exchange.py"
    program.write_text(program.read_text() + 'open("clock", "w").write(str(time.time()))\n')

    process = sites.begin()
    wait_until(lambda: sites.south.peer("north")["circuits"] >= 2, "there are no circuits")
    sites.line.reset()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert sites.printed() == expected_digests(STEPS, MOST)
    here, there = (float((sites.folder / f"run/instances/{name}/workdir/clock").read_text()) for name in "ab")
    assert round((there - here) / 3600) == hours

    for one, other in ((sites.north, "south"), (sites.south, "north")):
        assert 0 <= one.status["seconds"] < 120
        assert 0 < (one.peer(other)["round_trip_ms"] or 1) < 10_000
