"""A run that goes on: what the manager tells, to the end."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import titin
from titin.model import Model

from .conftest import save


@pytest.mark.parametrize("count", [3, 1000])
def test_a_run_is_followed_to_its_end(live, view, count):
    run = live(count)
    server = view(run.directory)
    server.enter()
    # All members are served once, and wait for the second message.
    state = server.until(lambda state: sum(one["state"] == "waiting" for one in state["instances"]) == count)
    assert state["phase"] == "running"
    facts = server.json("facts")
    assert (facts["model"], facts["components"]) == ("ensemble", ["driver", "member"])
    assert len(facts["instances"]) == count + 1
    assert 'data-name="member"' in facts["graph"]
    driver, *members = state["instances"]
    assert driver["state"] == "running"
    assert (driver["messages"], driver["bytes"]) == (count, 8 * count)
    assert all(one["process"] == driver["process"] for one in members)
    assert driver["process"]["pid"] == run.process.pid
    assert driver["process"]["memory"] > 1e6
    [waits] = state["waits"]
    assert waits == {
        "component": "member",
        "from": "driver.out",
        "to": "member.in",
        "sends": False,
        "count": count,
    }
    assert members[0]["text"] == "waits to receive message 2 on in, for driver.out[0]"
    run.finish()
    state = server.until(lambda state: state["phase"] not in ("running", "ending"))
    assert state["phase"] == "done"
    assert all(one["state"] == "done" for one in state["instances"])
    assert state["instances"][0]["messages"] == 2 * count
    facts = server.json("facts")
    assert [(one["pairs"], one["messages"]) for one in facts["conduits"]] == [(count, 2 * count)] * 2
    # Instances of one component have one bar if there are many.
    assert facts["times"].count('class="instance"') == (2 if count > 48 else count + 1)


def test_a_page_costs_little(live, view):
    """The command and what it asks of the manager stay far below a core. The limit of a hundredth holds for a release
    build on a machine that does nothing else; a watchdog that fails on a spinning thread is what a test can have."""
    run = live(200)
    server = view(run.directory)
    server.enter()
    server.json("state")
    before, begun = processor_time(server.process.pid), time.monotonic()
    for _ in range(5):
        server.json("state")
        time.sleep(1)
    load = (processor_time(server.process.pid) - before) / (time.monotonic() - begun)
    assert load < 0.3, load


def test_a_manager_that_is_silent_is_told_from_one_that_is_gone(live, view):
    run = live(2)
    server = view(run.directory)
    server.enter()
    server.until(lambda state: state["phase"] == "running")
    # What is left if manager and guard are killed at once: a connection file that leads nowhere.
    text = (run.directory / "connection.json").read_text()
    run.finish()
    server.until(lambda state: state["phase"] == "done")
    (run.directory / "end.json").unlink()
    (run.directory / "performance.sqlite").unlink()
    fresh = view(run.directory)
    fresh.enter()
    state = fresh.json("state")
    assert state["phase"] == "lost" and "does not say how the run has ended" in state["report"]
    assert [one["state"] for one in state["instances"]] == ["ended"] * 3
    (run.directory / "connection.json").write_text(text)
    state = fresh.until(lambda state: state["phase"] != "lost")
    assert state["phase"] == "silent" and "does not answer" in state["report"]
    (run.directory / "connection.json").write_text("{")
    assert fresh.until(lambda state: "EOF" in (state["report"] or ""))["phase"] == "silent"


def test_a_failed_run_shows_its_report(tmp_path, view):
    model = Model("pair")
    model.component("sender", o_f="out")
    model.component("receiver", f_init="in")
    model.conduit("sender.out", "receiver.in")

    def sender(instance):
        raise ValueError("17 cells are <b>dry</b>")

    def receiver(instance):
        while instance.reuse():
            instance.receive("in")

    with pytest.raises(ValueError, match="dry"):
        titin.run(model, {"sender": sender, "receiver": receiver}, run_dir=tmp_path / "run", quiet=True)
    server = view(tmp_path / "run")
    server.enter()
    state = server.json("state")
    assert state["phase"] == "failed"
    assert "First:    sender" in state["report"] and "17 cells are <b>dry</b>" in state["report"]
    assert state["instances"][0]["state"] == "failed"
    page = save(tmp_path / "run", tmp_path / "page.html")
    assert "17 cells are \\u003cb>dry" in page and "<b>dry" not in page


def processor_time(pid: int) -> float:
    """Seconds of a process on processors."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
