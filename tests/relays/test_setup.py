"""Mistakes in the setup of sites: the run ends at once, or says soon what it waits for and why."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import Line, Relay, Sites, free_port, row_without_transit, wait_until


def rewrite(file: Path, old: str, new: str) -> None:
    """Replaces a text in a file."""
    text = file.read_text()
    assert old in text, text
    file.write_text(text.replace(old, new))


def test_a_site_that_no_relay_knows_is_refused_at_once(sites: Sites) -> None:
    sites.write(steps=1, most=10)
    rewrite(sites.folder / "model.ymmsl", "south", "sotuh")
    code, out = sites.run()
    assert code != 0, out
    said = " ".join(out.split())
    assert "the relay of the site north knows no way to the site sotuh: is this the name of the site there?" in said, (
        out
    )
    assert "It knows south" in said, out
    assert not (sites.folder / "run").exists()
    assert "not admitted" in sites.north.log


def test_a_site_without_a_host_keeps_no_run_away(sites: Sites) -> None:
    sites.write(steps=3, most=10)
    rewrite(sites.folder / "model.ymmsl", "sites: {", 'sites: {nowhere: {relay: "nowhere:1"}, ')
    code, out = sites.run()
    assert code == 0, out
    assert "WARNING manager no host is at the site nowhere, which `titin: sites` lists" in " ".join(out.split()), out


def test_a_relay_that_is_not_connected_is_named_and_awaited(sites: Sites) -> None:
    sites.write(steps=3, most=10)
    sites.south.kill()
    wait_until(lambda: not sites.north.peer("south")["connected"], "north takes south for connected")
    process = sites.begin()
    assert process.stdout
    said = ""
    while "is not connected" not in said:
        said += (line := process.stdout.readline())
        assert line, said
    assert re.search(r"WARNING .*the relay of the site south is not connected: .*; the run waits for it", said), said
    sites.south.start()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said + out


def fails_with(sites: Sites, words: str) -> str:
    """What a run says that fails in the end, and has these words on its page of the failure."""
    code, out = sites.run()
    said = " ".join(out.split())
    assert code == 1, out
    assert words in said.partition("First:")[2], out
    return said


@pytest.mark.parametrize("listens", [False, True], ids=["nothing_listens", "unknown_run"])
def test_a_wrong_relay_is_named_with_the_reason(sites: Sites, relays: Callable[..., Relay], listens: bool) -> None:
    sites.write(steps=1, most=10, more="  register_timeout: 16 s")
    port = free_port()
    reason = f"the relay 127.0.0.1:{port} of this site: Connection refused"
    if listens:
        east = relays("east")
        east.start()
        port, reason = east.local, f"the relay 127.0.0.1:{east.local} of this site does not know the run"
    rewrite(sites.folder / "model.ymmsl", f":{sites.south.local}", f":{port}")
    said = fails_with(sites, reason)
    assert "it takes connections, but has not answered" not in said, said
    # While the run waits, its output and that of the agent say why.
    assert re.search(rf"WARNING .*waited for the agent of host far \(site south\) for 10 s; .*{reason}", said), said
    agent = (sites.folder / "run/agents/far.txt").read_text()
    assert agent.count("the manager is not reached yet: ") == 1, agent
    assert "error: cannot reach north/" in agent, agent
    assert "Try the command by hand" in said, said


def test_the_port_for_other_relays_is_not_the_one_for_programs(sites: Sites) -> None:
    """Each of the two ports says so when it is taken for the other."""
    sites.write(steps=1, most=10, more="  register_timeout: 4 s")
    assert sites.north.listen
    # The agent at south is told the open port of a relay.
    rewrite(sites.folder / "model.ymmsl", f":{sites.south.local}", f":{sites.north.listen}")
    place = f"127.0.0.1:{sites.north.listen}"
    fails_with(sites, f"what listens at {place} is not a relay's port for programs of its site: give the `local`")
    sites.south.titin(
        "trust", "north", sites.north.fingerprint, "--replace", "--address", f"127.0.0.1:{sites.south.local}"
    )
    assert sites.south.process
    sites.south.process.send_signal(signal.SIGHUP)
    why = "`address` is not the `listen` address of that relay"
    wait_until(lambda: why in (sites.south.peer("north")["down"] or ""), lambda: sites.south.log)


def test_a_line_that_is_down_is_named_on_the_page(sites: Sites) -> None:
    sites.write(steps=1, most=10, more="  register_timeout: 5 s")
    sites.line.cut()
    wait_until(lambda: not sites.north.peer("south")["connected"], "north takes south for connected")
    said = fails_with(sites, "Waiting:")
    waiting = said.partition("Waiting:")[2]
    assert "the relay of this site is not connected to that of south: " in waiting, said


def limit_peer(relay: Relay, key: str, limit: int) -> None:
    """Has a relay allow its only peer no more than a limit, such as so many ``streams``."""
    rewrite(relay.folder / "relay.toml", "fingerprint = ", f"{key} = {limit}\nfingerprint = ")
    relay.kill()
    relay.start()


def test_a_run_too_many_is_told_with_the_limit(sites: Sites) -> None:
    sites.write(steps=1, most=10, more="  register_timeout: 5 s")
    limit_peer(sites.south, "runs", 0)
    said = fails_with(sites, "does not know the run")
    why = "does not take the run over: the most runs that it takes from the relay of north are 0 (`runs`"
    # The warning, and the page.
    assert said.count(why) == 2, said


def test_a_relay_that_does_not_pass_on_is_named_on_the_page(tmp_path: Path, relays: Callable[..., Relay]) -> None:
    north, south, east = row_without_transit(relays)
    sites = Sites(tmp_path, north, east, Line(east.local))
    try:
        sites.write(steps=1, most=10, more="  register_timeout: 5 s")
        rewrite(tmp_path / "model.ymmsl", "south", "east")
        said = fails_with(sites, "does not know the run")
        why = "the site north is trusted without `transit`"
        assert f"the relay of the site south does not pass the run on to east: {why}" in said, said
        passing = [line for line in south.log.splitlines() if "a run is not passed on" in line]
        assert len(passing) == 1 and why in passing[0] and "east" in passing[0], south.log
    finally:
        sites.line.close()


def test_an_outage_that_heals_is_told(sites: Sites) -> None:
    sites.write(steps=200, most=100, pause=0.05)
    process = sites.begin()
    wait_until(lambda: sites.north.peer("south")["circuits"] >= 2, "there are no circuits")
    sites.line.cut()
    assert process.stdout
    said = ""
    while "the host counts as lost after 608 s (`patience` and `heartbeat`)" not in said:
        said += (line := process.stdout.readline())
        assert line, said
    assert "nothing has come from host far (site south)" in said
    assert "the relay of this site is not connected to that of south: " in process.stdout.readline()
    sites.line.mend()
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said + out
    assert re.search(r"WARNING .*host far is back after \d+ s", out), out


@pytest.mark.parametrize("limited", ["north", "south"])
@pytest.mark.parametrize("streams", [2, 3], ids=["no_circuit", "no_further_stream"])
def test_a_run_that_waits_for_a_circuit_says_why(sites: Sites, limited: str, streams: int) -> None:
    sites.write(steps=5, most=10)
    limit_peer(getattr(sites, limited), "streams", streams)
    process = sites.begin()
    assert process.stdout
    said = ""
    while "is not reached yet" not in said:
        said += (line := process.stdout.readline())
        assert line, said
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert re.search(rf"WARNING +[ab] .*has the most circuits that `streams` and `memory` allow: {streams}", said), said


def test_a_circuit_counts_once(sites: Sites) -> None:
    # Those of the agent and of b to the manager, and two streams of the link between a and b.
    sites.write(steps=5, most=10)
    for relay in (sites.north, sites.south):
        limit_peer(relay, "streams", 4)
    code, said = sites.run()
    assert code == 0, said


def test_a_host_under_another_site_than_its_own_is_told_by_the_relay(sites: Sites) -> None:
    sites.write(steps=1, most=10)
    rewrite(sites.folder / "model.ymmsl", f":{sites.south.local}", f":{sites.north.local}")
    fails_with(sites, "it is the relay of the site north, and not of south: correct `relay` under `titin: sites`")


def test_a_line_for_another_site_is_refused_before_its_token_is_used(sites: Sites) -> None:
    sites.write(steps=10, most=100, start="by hand")
    rewrite(sites.folder / "model.ymmsl", f":{sites.south.local}", f":{sites.north.local}")
    run = sites.begin_by_hand()
    with run.start_agent() as agent:
        said, _ = agent.communicate(timeout=60)
    assert agent.returncode == 2
    assert "it is the relay of the site north, and not of south" in " ".join(said.split()), said
    run.process.terminate()
    assert run.process.wait(timeout=60) == 130
    assert "has served" not in run.said.read_text()


def test_what_a_relay_does_not_take_over_is_told(sites: Sites) -> None:
    config = sites.north.folder / "relay.toml"
    rewrite(config, f":{sites.north.local}", ":1")
    assert sites.north.process
    sites.north.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "start the relay again to change them" in sites.north.log, "the log does not say it")
    command = [TITIN, "relay", "trust", "west", f"sha256:{64 * '0'}", "--until", "2025-01-31"]
    done = subprocess.run([*command, "--folder", sites.north.folder], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: --until 2025-01-31: this day is over\n"


def test_a_program_that_is_not_there_is_named_with_its_site(sites: Sites) -> None:
    sites.write(steps=1, most=10)
    rewrite(sites.folder / "model.ymmsl", "  b: {executable: ", "  b: {executable: /none")
    fails_with(sites, "b on host far (site south) could not be started: ")
