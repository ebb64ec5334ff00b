"""Mistakes in the setup of sites: the run ends at once, or says soon what it waits for and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Relay, Sites, free_port, wait_until


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
    why = "the relay of the site north knows no way to the site sotuh: `titin relay trust sotuh` adds it"
    assert why in " ".join(out.split()), out
    assert not (sites.folder / "run").exists()
    assert "not admitted" in sites.north.log


def test_a_site_without_a_host_keeps_no_run_away(sites: Sites) -> None:
    sites.write(steps=3, most=10)
    rewrite(sites.folder / "model.ymmsl", "sites: {", 'sites: {nowhere: {relay: "nowhere:1"}, ')
    code, out = sites.run()
    assert code == 0, out


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
