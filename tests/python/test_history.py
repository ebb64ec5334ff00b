"""A program that keeps every received view works with shared memory as with tcp, also when shared memory runs out."""

from __future__ import annotations

import json
import subprocess

import pytest

from ..conftest import TITIN
from .conftest import pair

COUNT, LENGTH = 10_000, 64 << 10

SENDER = f"""
import numpy as np
import titin

data = np.zeros({LENGTH}, np.uint8)
with titin.Instance(o_i="out spare") as instance:
    while instance.reuse():
        for time in range({COUNT}):
            data[:] = time % 251
            instance.send("out", data, timestamp=time)
"""

RECEIVER = f"""
import titin

with titin.Instance(s="in other") as instance:
    while instance.reuse():
        views = [instance.receive("in").data for time in range({COUNT})]
assert all(view[0] == view[-1] == time % 251 and len(view) == {LENGTH} for time, view in enumerate(views))
"""


@pytest.mark.parametrize(("medium", "ceiling"), [("tcp", ""), ("shm", "8 MiB"), ("shm", "0"), ("shm", "4 GiB")])
def test_all_views_are_kept(stage, monkeypatch, medium, ceiling):
    if ceiling:
        monkeypatch.setenv("TITIN_SHARED_MEMORY", ceiling)
    process = stage.launch(pair(), f"medium: {{receiver.in: {medium}}}", sender=SENDER, receiver=RECEIVER)
    output = process.communicate()[0]
    assert process.returncode == 0, output + stage.output()
    text = subprocess.run([TITIN, "profile", stage.folder / "run", "--json"], stdout=subprocess.PIPE, check=True).stdout
    (conduit,) = json.loads(text)["conduits"]
    assert (conduit["medium"], conduit["messages"]) == (medium, COUNT)
    shortage = {"8 MiB": range(1, COUNT), "0": [COUNT]}
    assert conduit["by_socket"] in shortage.get(ceiling, [0])
    shown = subprocess.run(
        [TITIN, "profile", stage.folder / "run"], stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    off = "TITIN_SHARED_MEMORY=0 in the environment of sender switches shared memory off"
    why = off if ceiling == "0" else "no shared memory was left"
    told = f"{conduit['by_socket']} of {COUNT} messages went by a socket, copied, since {why}"
    assert (told in shown) == (ceiling in shortage), shown
    log = (stage.folder / "run/titin_manager.log").read_text()
    assert log.count("no shared memory is left") == (ceiling == "8 MiB")


def test_a_ceiling_that_is_no_size_is_refused(stage, monkeypatch):
    monkeypatch.setenv("TITIN_SHARED_MEMORY", "lots")
    process = stage.launch(pair(), sender=SENDER, receiver=RECEIVER)
    output = process.communicate()[0]
    assert process.returncode != 0
    assert 'TITIN_SHARED_MEMORY is "lots": give the most bytes to share' in output + stage.output()
