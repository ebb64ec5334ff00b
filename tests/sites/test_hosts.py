"""One run over several hosts of a site: agents by ssh, placement, and every way for a host to fail."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ..conftest import TITIN
from .conftest import Hosts, chain, printed

THREE = "hosts: {localhost: {cores: 1}, n2: {cores: 1}, n3: {cores: 1}}"


def test_programs_go_where_cores_are_free(hosts: Hosts, tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b", "c"], THREE)
    done = hosts(3)
    assert done.returncode == 0, done.stdout
    assert printed(tmp_path, "a", "b", "c") == ["n1 0", "n2 1", "n3 2"]
    with sqlite3.connect(tmp_path / "run/performance.sqlite") as profile:
        cores = profile.execute("SELECT node, core FROM assigned_cores ORDER BY instance_oid").fetchall()
    assert [node for node, _ in cores] == ["n1", "n2", "n3"]
    assert "host n2 is ready" in done.stdout


def test_a_component_may_be_pinned_to_a_host(hosts: Hosts, tmp_path: Path) -> None:
    chain(
        tmp_path,
        ["a", "b", "c"],
        "hosts: {localhost: {components: [c]}, second: {address: root@n2, components: [a, b]}}",
    )
    done = hosts(2)
    assert done.returncode == 0, done.stdout
    assert printed(tmp_path, "a", "b", "c") == ["n2 0", "n2 1", "n1 2"]


def test_a_plan_says_who_goes_where(hosts: Hosts, tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b", "c"], THREE)
    done = hosts(1, TITIN, "run", "model.ymmsl", "--plan")
    rows = [line.split()[:2] for line in done.stdout.splitlines()[1:]]
    assert rows == [["a", "this"], ["b", "n2"], ["c", "n3"]], done.stdout
