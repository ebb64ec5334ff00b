"""Runs over two sites: whatever happens on the line between them, the bits are the same."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import Line, Relay, Sites, expected_digests, wait_until


def done(sites: Sites, steps: int, most: int) -> None:
    """Runs to the end, and compares the digests."""
    code, out = sites.run()
    assert code == 0, out
    assert sites.printed() == expected_digests(steps, most)


def test_programs_at_two_sites_exchange_messages(sites: Sites) -> None:
    sites.write(steps=30, most=200_000)
    done(sites, 30, 200_000)
    # South has no open port, so north calls for its connections.
    assert "admitted" in sites.north.log
    assert "over" in sites.north.log


@pytest.mark.parametrize("streams", [1, 4])
def test_no_cut_of_the_line_changes_a_bit(sites: Sites, streams: int) -> None:
    sites.write(steps=100, most=300_000, pause=0.03, more=f"  links: {{default: {{streams: {streams}}}}}")
    process = sites.begin()
    wait_until(lambda: sites.north.status["runs"], "the run is not admitted")
    sites.line.disturb(random.Random(streams), process)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert sites.printed() == expected_digests(100, 300_000)
    assert sites.line.connections > 10


def use_congestion(relay: Relay, control: str) -> None:
    """Starts a relay again with another congestion control."""
    relay.kill()
    config = relay.folder / "relay.toml"
    config.write_text(f'congestion = "{control}"\n{config.read_text()}')
    relay.start()
    wait_until(lambda: relay.peer("south")["connected"], "the relays do not connect")


def streams_in_the_end(sites: Sites) -> set[int | None]:
    """The numbers of streams of the links, as the profile of the run says."""
    command = [TITIN, "profile", "run", "--json"]
    told = subprocess.run(command, cwd=sites.folder, stdout=subprocess.PIPE, check=True).stdout
    return {conduit["streams"] for conduit in json.loads(told)["conduits"]}


def test_one_stream_fills_a_line_with_bbr(sites: Sites) -> None:
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if "bbr" not in known:
        pytest.skip("this system has no BBR")
    use_congestion(sites.north, "bbr")
    sites.write(steps=25, most=1_000_000)
    done(sites, 25, 1_000_000)
    # The profile counts the streams of a link that has several.
    assert streams_in_the_end(sites) == {None}


def test_streams_that_join_while_large_messages_flow_change_no_bit(sites: Sites) -> None:
    """Each stream carries 6 MB/s, so more of them carry more; the line breaks meanwhile."""
    use_congestion(sites.north, "cubic")
    sites.write(steps=25, most=4_000_000)
    sites.line.pause = 0.01
    process = sites.begin()
    wait_until(lambda: sites.north.status["runs"], "the run is not admitted")
    while process.poll() is None:
        time.sleep(2)
        sites.line.reset()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert sites.printed() == expected_digests(25, 4_000_000)
    streams = streams_in_the_end(sites)
    assert all(count and count >= 16 for count in streams), streams


def test_a_reset_between_a_program_and_its_relay_loses_nothing(sites: Sites) -> None:
    sites.write(steps=100, most=300_000, pause=0.03)
    taps = sites.tap()
    process = sites.begin()
    wait_until(lambda: all(tap.passed for tap in taps), "there are no circuits")
    aborted = 0
    while process.poll() is None:
        time.sleep(0.7)
        taps[aborted % 2].abort()
        aborted += 1
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert sites.printed() == expected_digests(100, 300_000)
    assert aborted >= 3
    for tap in taps:
        tap.close()


@pytest.mark.parametrize("names", [["north"], ["south"], ["north", "south"]], ids="-".join)
def test_a_relay_may_be_killed_and_started_again(sites: Sites, names: list[str]) -> None:
    sites.write(steps=100, most=300_000, pause=0.03)
    process = sites.begin()
    relays: list[Relay] = [getattr(sites, name) for name in names]
    wait_until(lambda: sites.north.status["runs"], "the run is not admitted")
    kills = 0
    while process.poll() is None and kills < 6:
        time.sleep(1)
        for relay in relays:
            relay.kill()
        time.sleep(0.1)
        for relay in relays:
            relay.start()
        kills += 1
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert sites.printed() == expected_digests(100, 300_000)
    assert kills >= 3
    # The relay of the manager's site has the run admitted anew each time, and the log says so. The run may end
    # between the last two times.
    again = len(re.findall(r"INFO .*the relay of this site has admitted the run again, after \d+[.]\d s", out))
    assert again >= kills - 2 if "north" in names else again == 0, out


def test_a_relay_that_is_to_end_lets_circuits_go_on(sites: Sites) -> None:
    sites.write(steps=60, most=300_000, pause=0.03, more="  links: {default: {streams: 1}}")
    relay = sites.south
    set_drain(relay, 60)
    process = sites.begin()
    wait_until(lambda: relay.peer("north")["bytes_sent"] > 4_000_000, "the programs exchange nothing")
    assert relay.process
    relay.process.send_signal(signal.SIGTERM)
    wait_until(lambda: not relay.answers(), "the relay takes new connections", 5)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert sites.printed() == expected_digests(60, 300_000)
    # The relay ends with the last circuit, long before its time.
    assert relay.process.wait(timeout=20) == 0, relay.log


def test_a_relay_ends_in_its_time_and_the_run_goes_on_with_the_next(sites: Sites) -> None:
    sites.write(steps=100, most=300_000, pause=0.03)
    relay = sites.south
    set_drain(relay, 0.5)
    process = sites.begin()
    wait_for_circuits(relay)
    assert relay.process
    relay.process.send_signal(signal.SIGTERM)
    assert relay.process.wait(timeout=20) == 0, relay.log
    assert process.poll() is None
    relay.start()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert sites.printed() == expected_digests(100, 300_000)


def wait_for_circuits(relay: Relay) -> None:
    """Waits until the programs of a run have circuits by a relay, besides those of the agent."""
    wait_until(lambda: sum(peer["circuits"] for peer in relay.status["peers"]) > 2, "there are no circuits")


def set_drain(relay: Relay, seconds: float) -> None:
    """Says how long circuits may go on after SIGTERM, and starts the relay anew."""
    relay.kill()
    write_drain(relay, seconds)
    relay.start()


def write_drain(relay: Relay, seconds: float) -> None:
    """Says how long circuits may go on after SIGTERM, once the relay is started."""
    config = relay.folder / "relay.toml"
    config.write_text(re.sub(r"(?m)^drain = .*$", f"drain = {float(seconds)}", config.read_text()))
    assert f"drain = {float(seconds)}" in config.read_text()


def test_the_address_of_a_relay_may_change_during_a_run(sites: Sites) -> None:
    sites.write(steps=100, most=300_000, pause=0.03)
    process = sites.begin()
    wait_for_circuits(sites.south)
    assert sites.north.listen and sites.south.process
    line = Line(sites.north.listen)
    config = sites.south.folder / "relay.toml"
    config.write_text(config.read_text().replace(f":{sites.line.port}", f":{line.port}"))
    sites.south.process.send_signal(signal.SIGHUP)
    wait_until(lambda: line.connections, "the relay does not dial the new address")
    sites.line.close()
    before = line.connections
    wait_until(lambda: line.connections > before + 2, "the circuits do not come back by the new address")
    out, _ = process.communicate(timeout=60)
    line.close()
    assert process.returncode == 0, out
    assert sites.printed() == expected_digests(100, 300_000)


#: Two programs that exchange a message, and close when they are told.
CLOSING = """\
import sys, time
from pathlib import Path
import titin

folder, name = Path(sys.argv[0]).parent, sys.argv[1]
with titin.Instance(o_i=["out"], s=["in"]) as instance:
    while instance.reuse():
        # The first one to send is the one that dials.
        for call in sorted(["send", "receive"], reverse=name == "a"):
            instance.send("out", 1, timestamp=0.0) if call == "send" else instance.receive("in")
        (folder / f"{name} waits").touch()
        while not (folder / "close").exists():
            time.sleep(0.01)
"""


def test_two_programs_that_close_wait_for_a_line_that_stands_still(sites: Sites) -> None:
    sites.write(steps=0, most=0)
    (sites.folder / "exchange.py").write_text(CLOSING)
    north, south = sites.tap()
    process = sites.begin()
    wait_until(lambda: all((sites.folder / f"{name} waits").exists() for name in "ab"), "there is no exchange")
    # The program that dials the other is at north, so the links with the manager are not held up.
    assert north.passed and south.passed
    north.is_open.clear()
    (sites.folder / "close").touch()
    time.sleep(3)
    north.is_open.set()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    for tap in (north, south):
        tap.close()


def test_an_agent_at_another_site_may_be_started_by_hand(sites: Sites) -> None:
    """The token goes through the relays, sealed, and serves once."""
    sites.write(steps=60, most=1000, pause=0.05, start="by hand")
    taps = sites.tap()
    run = sites.begin_by_hand()
    secret = json.loads((sites.folder / "run/connection.json").read_text())["secret"]
    assert secret not in run.token
    agent = run.start_agent()
    wait_until((sites.folder / "run/instances/b/stdout.txt").exists, "b has not been started")
    again = run.start_agent()
    said, _ = again.communicate(timeout=60)
    assert again.returncode == 2, said
    assert "the manager does not take the token: it has served already," in " ".join(said.split())
    said, _ = agent.communicate(timeout=60)
    assert agent.returncode == 0, said
    assert run.process.wait(timeout=60) == 0, run.said.read_text()
    assert sites.printed() == expected_digests(60, 1000)
    for tap in taps:
        tap.close()
    passed = b"".join(bytes(tap.passed) for tap in taps)
    assert b'"circuit"' in passed
    assert secret.encode() not in passed
    assert bytes.fromhex(secret) not in passed
    log = (sites.folder / "run/titin_manager.log").read_text()
    assert "the token of host far has served an agent" in log
    assert "an agent is not let in: the token of host far has served already" in log
    assert list(run.elsewhere.iterdir()) == []
    assert not list((sites.folder / "run").glob("connection*"))


def test_the_agent_at_another_site_may_come_by_a_batch_job(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    # PSI/J keeps its own files in the home directory.
    monkeypatch.setenv("HOME", str(sites.folder))
    sites.write(steps=60, most=1000, start="{batch: local, time: 10 min, via: [env]}")
    code, out = sites.run()
    assert code == 0, out
    assert sites.printed() == expected_digests(60, 1000)
    assert "the token of host far has served an agent" in (sites.folder / "run/titin_manager.log").read_text()


def test_a_program_at_another_site_cannot_be_started_by_hand(sites: Sites) -> None:
    sites.write(steps=1, most=1)
    command = [TITIN, "run", "model.ymmsl", "--by-hand", "b", "--relay", sites.north.folder]
    refused = subprocess.run(command, cwd=sites.folder, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2, refused
    assert "you are to start b by hand, and `titin: hosts` has it at the site south" in " ".join(refused.stderr.split())


def test_past_patience_the_run_ends_at_both_sites_with_the_reason(sites: Sites) -> None:
    sites.write(steps=100_000, most=100, pause=0.01, more="  heartbeat: 1 s\n  patience: 2 s")
    process = sites.begin()
    wait_until(lambda: (sites.folder / "run/instances/b/stdout.txt").exists(), "b has not been started")
    wait_until(lambda: sites.north.peer("south")["circuits"] >= 2, "there are no circuits")
    time.sleep(0.5)
    sites.line.cut()
    began = time.monotonic()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1, out
    assert time.monotonic() - began > 1.9
    assert "2 s" in out, out
    agent = (sites.folder / "run/agents/far.txt").read_text()
    assert "the manager is gone" in agent, agent
