"""What `titin relay status` says of a link that carries messages and loses packets."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import Line, Relay, Sites, wait_until

KEYS = ("round_trip_ms", "bytes_sent_per_second", "bytes_received_per_second", "retransmissions")


def test_a_link_has_a_round_trip_rates_and_packets_sent_again(
    tmp_path: Path, relays: Callable[..., Relay], far_network: tuple[str, str, str]
) -> None:
    """South is in a network of its own, whose cable is pulled for a moment while the programs send."""
    name, near, here = far_network
    enter = ["ip", "netns", "exec", name]
    north, south = relays("north", host=here), relays("south", open_port=False, host=here[:-1] + "2")
    south.starter = enter
    north.trust(south)
    south.trust(north, "--address", f"{here}:{north.listen}")
    for relay in (north, south):
        relay.start()
    wait_until(lambda: north.peer("south")["connected"], "the relays do not connect")
    assert north.peer("south")["retransmissions"] == 0

    line = Line(south.local)
    sites = Sites(tmp_path, north, south, line)
    sites.write(steps=100_000, most=500_000, start=f"[{', '.join(enter)}]")
    process = sites.begin()

    row = ""

    def is_complete() -> bool:
        """Whether both ends know of all, and the page says so, after a moment without the cable."""
        nonlocal row
        for state, seconds in (("down", 0.4), ("up", 1.0)):
            subprocess.run(["ip", "link", "set", near, state], check=True)
            time.sleep(seconds)
        peers = (north.peer("south"), south.peer("north"))
        if not all((peer[key] or 0) > 0 for peer in peers for key in KEYS):
            return False
        row = next(row for row in north.titin("status").splitlines() if row.startswith("south "))
        link, round_trip, _, circuits, sent, _, received, _, again = row.split()[1:]
        return link == "up" and all(float(figure) > 0 for figure in (round_trip, circuits, sent, received, again))

    try:
        wait_until(lambda: north.peer("south")["circuits"] >= 3, "there are no circuits")
        wait_until(is_complete, lambda: f"{north.peer('south')}, {south.peer('north')}, {row}", 60)
    finally:
        process.terminate()
        process.communicate(timeout=60)
        line.close()


def test_a_configuration_that_has_changed_since_is_told(relays: Callable[..., Relay]) -> None:
    north = relays("north")
    north.start()
    assert north.process
    note = "relay.toml has changed since the relay has read it"
    assert note not in north.titin("status")
    north.titin("trust", "west", f"sha256:{64 * '0'}")
    assert f"{note}: `kill -HUP {north.process.pid}` on its host" in " ".join(north.titin("status").split())
    north.process.send_signal(signal.SIGHUP)
    wait_until(lambda: note not in north.titin("status"), "the relay has not read it again")
    assert [peer["site"] for peer in north.status["config"]["peer"]] == ["west"]


def test_a_configuration_that_is_no_ordinary_file_stops_nothing(relays: Callable[..., Relay]) -> None:
    north = relays("north")
    north.start()
    assert north.process
    config = north.folder / "relay.toml"
    config.unlink()
    os.mkfifo(config)
    north.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "it is no ordinary file" in north.log, "nothing is logged")
    north.process.send_signal(signal.SIGTERM)
    assert north.process.wait(10) == 0


def test_a_relay_does_not_trust_itself(relays: Callable[..., Relay]) -> None:
    north = relays("north")
    before = (north.folder / "relay.toml").read_text()
    with pytest.raises(subprocess.CalledProcessError) as refused:
        north.titin("trust", "south", north.fingerprint)
    assert "the fingerprint for the site south is that of this relay itself" in " ".join(refused.value.stderr.split())
    assert (north.folder / "relay.toml").read_text() == before


def test_the_output_of_an_instance_is_followed_before_its_host_is_there(sites: Sites) -> None:
    sites.write(steps=10, most=100, start="by hand")
    run = sites.begin_by_hand()
    follow = [TITIN, "logs", sites.folder / "run", "b", "--follow"]
    with subprocess.Popen(follow, stdout=subprocess.PIPE, text=True) as follower:
        other = subprocess.run([TITIN, "logs", sites.folder / "run", "c"], capture_output=True, text=True, check=False)
        assert other.returncode == 2
        assert "the run has no instance c; " in other.stderr
        run.start_agent().communicate(timeout=60)
        assert run.process.wait(timeout=60) == 0
        said, _ = follower.communicate(timeout=30)
    assert said.split() == [sites.printed()[1]]
    assert follower.returncode == 0
