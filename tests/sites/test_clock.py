"""Hosts whose clocks are an hour off: results, files and spans of time are as ever."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import HOSTS, clock_off

CALLS, PAUSE = 30, 0.05

#: One program calls two others, again and again. The others answer with changed numbers and their clocks. At their ends
#: they change a staged file, but not its length. The first prints the sum, and by how many hours the clocks are off.
CLOCKS = f"""\
import sys, time
from pathlib import Path
import numpy as np
import titin

name = sys.argv[1]
if name == "near":
    total, hours = 0, set()
    with titin.Instance(o_i=["out", "other"], s=["in", "back"]) as instance:
        while instance.reuse():
            for call in range({CALLS}):
                for port in ("out", "other"):
                    instance.send(port, np.full(1000, call), timestamp=float(call))
                for port in ("in", "back"):
                    answer = instance.receive(port).data
                    total += int(answer["numbers"].sum())
                    hours.add((port, round((answer["time"] - time.time()) / 3600)))
            instance.log("info", "all answers are here")
    print(total, *(hour for _, hour in sorted(hours, reverse=True)))
else:
    with titin.Instance(f_init=["in"], o_f=["out"]) as instance:
        while instance.reuse():
            numbers = instance.receive("in").data
            with instance.region("work"):
                time.sleep({PAUSE})
            instance.send("out", {{"numbers": numbers + 1, "time": time.time()}}, timestamp=0.0)
        instance.log("info", "the answers are given")
    words = Path("words").read_text()
    Path("words").write_text(words.upper())
"""

MODEL = """\
ymmsl_version: v0.2
models:
  clocks:
    components:
      near: {{description: asks, ports: {{o_i: out other, s: in back}}, implementation: near}}
      ahead: {{description: answers, ports: {{f_init: in, o_f: out}}, implementation: ahead}}
      behind: {{description: answers, ports: {{f_init: in, o_f: out}}, implementation: behind}}
    conduits: {{near.out: ahead.in, near.other: behind.in, ahead.out: near.in, behind.out: near.back}}
programs:
  near: {{executable: {python}, args: [{folder}/clocks.py, near]}}
  ahead: {{executable: {python}, args: [{folder}/clocks.py, ahead]}}
  behind: {{executable: {python}, args: [{folder}/clocks.py, behind]}}
titin:
  hosts:
    localhost: {{components: [near]}}
    n2: {{components: [ahead], titin: {folder}/ahead.sh, folder: {folder}/scratch}}
    n3: {{components: [behind], titin: {folder}/behind.sh, folder: {folder}/scratch}}
  stage: {{ahead: {{in: [words], out: [words]}}, behind: {{in: [words], out: [words]}}}}
  heartbeat: 5 s
"""


@pytest.fixture(scope="module")
def folder(namespaces: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in which the clock of one host is an hour ahead, and that of another an hour behind.

    Both lack the run directory, so files go there and come back. All hosts have the same files otherwise.
    """
    folder = tmp_path_factory.mktemp("clocks")
    for name, hours in (("ahead", 1), ("behind", -1)):
        settings = " ".join(f"{key}={value}" for key, value in clock_off(hours, folder).items())
        script = folder / f"{name}.sh"
        script.write_text(f'#!/bin/sh\nexec env {settings} {TITIN} "$@"\n')
        script.chmod(0o755)
    (folder / "clocks.py").write_text(CLOCKS)
    (folder / "words").write_text("some words\n")
    (folder / "model.ymmsl").write_text(MODEL.format(python=sys.executable, folder=folder))
    for name in ("scratch", "run"):
        (folder / name).mkdir()
    done = subprocess.run(
        [HOSTS, "3", TITIN, "run", "model.ymmsl", "--run-dir", "run", "--trace"],
        cwd=folder,
        env=os.environ | {"HIDDEN": str(folder / "run")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    return folder


def test_results_and_files_are_as_ever(folder: Path) -> None:
    numbers = 1000 * sum(2 * (call + 1) for call in range(CALLS))
    # Of the clocks, the first is ahead and the second is behind.
    assert (folder / "run/instances/near/stdout.txt").read_text() == f"{numbers} 1 -1\n"
    for name in ("ahead", "behind"):
        assert (folder / f"run/results/{name}/words").read_text() == "SOME WORDS\n"
    assert list((folder / "scratch").iterdir()) == []


def test_spans_of_time_in_the_profile_are_as_ever(folder: Path) -> None:
    command = [TITIN, "profile", folder / "run", "--json"]
    profile = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    least, most = CALLS * PAUSE, profile["run"]["seconds"]
    assert least < most < 120
    instances = {instance["name"]: instance for instance in profile["instances"]}
    assert sorted(instances) == ["ahead", "behind", "near"]
    for name, instance in instances.items():
        assert least < instance["total"] < most
        spans = [instance[kind] for kind in ("compute", "waiting", "sending")]
        assert all(0 <= span < most for span in spans) and sum(spans) == pytest.approx(instance["total"])
        assert instance["waiting" if name == "near" else "compute"] > 0.9 * least
    for conduit in profile["conduits"]:
        assert conduit["messages"] == CALLS
        assert all(0 <= conduit[end] < most for end in ("sender_waited", "receiver_waited"))
    assert [region["uses"] for region in profile["regions"]] == [CALLS, CALLS]
    assert all(least < region["seconds"] < most for region in profile["regions"])
    with sqlite3.connect(folder / "run/performance.sqlite") as database:
        rows = database.execute("SELECT stop_time - start_time FROM events").fetchall()
    assert len(rows) > 8 * CALLS
    assert all(0 <= row[0] * 1e-9 < most for row in rows)


def test_all_times_are_of_one_clock(folder: Path) -> None:
    log = (folder / "run/titin_manager.log").read_text()
    assert "the answers are given" in log
    times = [datetime.fromisoformat(time) for time in re.findall(r"^(\S+ \S+)  [A-Z]", log, re.MULTILINE)]
    assert (max(times) - min(times)).total_seconds() < 120, log
    with sqlite3.connect(folder / "run/performance.sqlite") as database:
        first, last = database.execute("SELECT MIN(start_time), MAX(stop_time) FROM events").fetchone()
    assert (last - first) * 1e-9 < 120
