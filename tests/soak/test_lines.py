"""Lines that go down, streams that break and relays that end, again and again: the bits are the same."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import needs
from ..relays.conftest import Line, Relay, wait_until
from .conftest import PAIR, Soak, Wan, amount, chosen_seed, note

pytestmark = pytest.mark.timeout(7200)


@pytest.mark.parametrize("is_full", [False, True], ids=["light", "full"])
def test_outages_of_a_line_that_loses_packets(far_soak: Soak, wan: Wan, is_full: bool) -> None:
    chance = random.Random(chosen_seed())
    count = int(amount("OUTAGES", 100)) // (5 if is_full else 1)
    if is_full:
        wan.call("set", "rate", "300")
        far_soak.begin_flow(PAIR, most=1_000_000, window=8, pause=0.0)
    else:
        far_soak.begin_flow(PAIR, most=100_000, pause=0.05)
    far_soak.await_programs()
    away = 0.0
    for _ in range(count):
        outage = chance.uniform(0.1, 20)
        wan.call("set", "link", "down")
        far_soak.pass_time(outage)
        wan.call("set", "link", "up")
        away += outage
        far_soak.pass_time(chance.uniform(0, 5))
    far_soak.end(program=1024)
    note(outages=count, seconds_of_outages=round(away))


@pytest.mark.parametrize("victim", [0, 1], ids=["north", "south"])
def test_a_relay_is_killed_and_started_again_and_again(near_soak: Soak, victim: int) -> None:
    chance = random.Random(chosen_seed())
    near_soak.begin_flow(PAIR, most=300_000)
    near_soak.await_programs()
    for _ in range(int(amount("RESTARTS", 20))):
        near_soak.pass_time(chance.uniform(0.5, 3))
        near_soak.relays[victim].kill()
        near_soak.pass_time(chance.uniform(0, 2))
        near_soak.relays[victim].start()
    near_soak.end()
    note(kills_of_the_relay=int(amount("RESTARTS", 20)))


def reset_one(chance: random.Random, port: int) -> bool:
    """Resets one of the connections to a port of this machine. Says whether there was one."""
    show = ["ss", "--tcp", "--numeric", "--no-header", "state", "established", f"( dport = :{port} )"]
    lines = subprocess.run(show, capture_output=True, text=True, check=True).stdout.splitlines()
    if not lines:
        return False
    source = chance.choice(sorted(lines)).split()[2].rpartition(":")[2]
    kill = ["ss", "--kill", "--tcp", "--no-header", f"( sport = :{source} and dport = :{port} )"]
    return bool(subprocess.run(kill, capture_output=True, text=True, check=True).stdout.strip())


def test_a_stream_is_reset_every_second(near_soak: Soak) -> None:
    needs("ss")
    chance = random.Random(chosen_seed())
    near_soak.begin_flow(PAIR, most=1_000_000, pause=0.0)
    near_soak.await_programs()
    port = near_soak.relays[0].listen
    assert port
    resets = 0
    for _ in range(int(amount("RESETS", 120))):
        near_soak.pass_time(1)
        resets += reset_one(chance, port)
    # A link that is slow after a reset tries up to 128 streams, with buffers of their own.
    near_soak.end(program=768)
    note(connections_reset=resets)
    assert resets > 0


@pytest.mark.parametrize("where", ["between-relays", "everywhere"])
def test_relays_end_and_streams_break_while_lines_are_full(near_soak: Soak, where: str) -> None:
    needs("ss")
    chance = random.Random(chosen_seed())
    north, south = near_soak.relays
    assert north.listen
    # Everywhere: also between a process and the relay of its site.
    ports = [north.listen] + [north.local, south.local] * (where == "everywhere")
    near_soak.begin_flow(PAIR * 3, most=500_000, pause=0.0)
    near_soak.await_programs(6)
    for _ in range(int(amount("FAULTS", 200))):
        near_soak.pass_time(chance.choice([0, 0.01, 0.1, 1]))
        if chance.random() < 0.7:
            reset_one(chance, chance.choice(ports))
            continue
        ended = chance.choice([[north], [south], [north, south]])
        for relay in ended:
            relay.kill()
        near_soak.pass_time(chance.choice([0, 0.2, 2]))
        for relay in ended:
            relay.start()
    # Three links may have 128 streams each.
    near_soak.end(program=1024, relay=160)
    note(faults=int(amount("FAULTS", 200)))


@pytest.mark.parametrize("shape", ["row", "triangle"])
def test_three_sites_with_outages(tmp_path: Path, relays: Callable[..., Relay], shape: str) -> None:
    chance = random.Random(chosen_seed())
    north, south, east = relays("north"), relays("south"), relays("east")
    lines = []

    def join(near: Relay, far: Relay, *options: str) -> None:
        """Far dials near, by a line of its own."""
        assert near.listen
        lines.append(Line(near.listen))
        near.trust(far, *options)
        far.trust(near, *options, port=lines[-1].port)

    join(north, south, "--transit")
    join(south, east, "--transit")
    if shape == "triangle":
        join(north, east)
    else:
        north.titin("trust", "east", "--via", "south")
        east.titin("trust", "north", "--via", "south")
    for relay in (north, south, east):
        relay.start()
    wait_until(
        lambda: all(peer["connected"] for relay in (north, south, east) for peer in relay.status["peers"]),
        "the relays do not connect",
    )
    soak = Soak(tmp_path, [north, south, east])

    def disturb(line: Line, chance: random.Random) -> None:
        """Cuts a line, or breaks its connections, until all is over."""
        for _ in range(int(amount("CUTS", 20))):
            time.sleep(chance.uniform(0.2, 3))
            if chance.random() < 0.3:
                line.reset()
            else:
                line.cut()
                time.sleep(chance.uniform(0.1, 10))
                line.mend()

    try:
        soak.begin_flow([("north", "south"), ("south", "east"), ("east", "north")], most=100_000)
        soak.await_programs(6)
        threads = [threading.Thread(target=disturb, args=(line, random.Random(chance.random()))) for line in lines]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads):
                soak.pass_time(0.5)
        finally:
            for thread in threads:
                thread.join()
        soak.end()
        note(cuts_of_each_line=int(amount("CUTS", 20)))
    finally:
        soak.close()
        for line in lines:
            line.close()
