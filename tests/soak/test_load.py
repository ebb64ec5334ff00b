"""Full lines, receivers that do not read, and many conduits: memory is bounded, and the bits are the same."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time

import numpy as np
import pytest

from ..relays.conftest import wait_until
from .conftest import MIB, PAIR, Soak, Wan, amount, note

pytestmark = pytest.mark.timeout(3600)

MODEL = """\
ymmsl_version: v0.2
models:
  soak:
    components:
      a: {{description: x, ports: {{{a_ports}}}, implementation: a}}
      b: {{description: x, ports: {{{b_ports}}}, implementation: b}}
    conduits: {{{conduits}}}
programs:
  a: {{executable: {python}, args: [{folder}/load.py, a, {folder}, {arguments}]}}
  b: {{executable: {python}, args: [{folder}/load.py, b, {folder}, {arguments}]}}
"""


def begin(
    soak: Soak, program: str, *arguments: object, a_ports: str = "", b_ports: str = "", conduits: str = ""
) -> None:
    """Starts a run of two programs."""
    (soak.folder / "load.py").write_text(program)
    text = MODEL.format(
        python=sys.executable,
        folder=soak.folder,
        a_ports=a_ports or "o_i: out, s: in",
        b_ports=b_ports or "o_i: out, s: in",
        conduits=conduits or "a.out: b.in, b.out: a.in",
        arguments=", ".join(f'"{argument}"' for argument in arguments),
    )
    soak.begin(text + soak.sections({"north": ["a"], "south": ["b"]}))


def test_messages_fill_both_directions(far_soak: Soak, wan: Wan) -> None:
    wan.call("set", "rate", "300")
    far_soak.begin_flow(PAIR, most=4_000_000, window=8, pause=0.0)
    far_soak.await_programs()
    far_soak.pass_time(amount("FULL", 60))
    far_soak.end(program=1500)


#: Both programs send a field before they receive one. A field whose first element is -1 is the last.
FIELDS = """\
import hashlib, sys
from pathlib import Path
import numpy as np
import titin

name, stop, size = sys.argv[1], Path(sys.argv[2]) / "stop", int(sys.argv[3])
rng, digest = np.random.default_rng(ord(name)), hashlib.sha256()
got, steps, over = np.zeros(size), 0, False
with titin.Instance(o_i=["out"], s=["in"]) as instance:
    instance.reuse()
    out, into = (instance.field(port, (size,), float) for port in ("out", "in"))
    while not over:
        mine = rng.random(size)
        over = name == "a" and stop.exists()
        mine[0] = -over
        out.send(mine, timestamp=float(steps))
        into.receive(got)
        digest.update(got)
        over = over or got[0] == -1
        steps += 1
print(digest.hexdigest(), steps)
"""


def test_fields_fill_both_directions(far_soak: Soak, wan: Wan) -> None:
    wan.call("set", "rate", "300")
    size = 4_000_000
    began = time.monotonic()
    begin(far_soak, FIELDS, size)
    far_soak.await_programs()
    far_soak.pass_time(amount("FULL", 60))
    far_soak.stop.touch()
    far_soak.wait(120)
    (got_a, steps), (got_b, steps_b) = (far_soak.output(name).split() for name in "ab")
    assert steps == steps_b
    digests = {}
    for name in "ab":
        rng, digest = np.random.default_rng(ord(name)), hashlib.sha256()
        for step in range(int(steps)):
            mine = rng.random(size)
            mine[0] = -1 if name == "a" and step == int(steps) - 1 else 0
            digest.update(mine)
        digests[name] = digest.hexdigest()
    assert (got_a, got_b) == (digests["b"], digests["a"])
    note(fields_each_way=int(steps), MiB_of_each=round(size * 8 / MIB), run_seconds=round(time.monotonic() - began))
    assert far_soak.memory
    far_soak.memory.check(program=1500)


#: One program sends to another, which after some messages computes for a while.
STALL = """\
import hashlib, sys, time
from pathlib import Path
import numpy as np
import titin

name, folder, most, seconds = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
count, digest = 0, hashlib.sha256()
if name == "a":
    rng, over = np.random.default_rng(1), False
    with titin.Instance(o_i=["out"]) as instance:
        instance.reuse()
        while not over:
            over = (folder / "stop").exists()
            size = 0 if over else 1 + (count * 7919) % most
            instance.send("out", rng.integers(0, 2**63, size=size, dtype=np.int64), timestamp=float(count))
            count += not over
            (folder / "sent").write_text(f"{count:9}")
else:
    with titin.Instance(s=["in"]) as instance:
        instance.reuse()
        while len(got := np.asarray(instance.receive("in").data)):
            digest.update(got)
            count += 1
            if count == 20:
                (folder / "stalls").touch()
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    pass
                (folder / "goes-on").touch()
print(digest.hexdigest(), count)
"""


@pytest.mark.parametrize("how", ["computes", "is-stopped"])
def test_a_receiver_does_not_read(near_soak: Soak, how: str) -> None:
    folder, most = near_soak.folder, 1_000_000
    computes = how == "computes"
    seconds = amount("STALL", 60 if computes else 30)
    begin(
        near_soak, STALL, most, seconds if computes else 0, a_ports="o_i: out", b_ports="s: in", conduits="a.out: b.in"
    )
    wait_until(lambda: (folder / "stalls").exists(), "the receiver does not receive", 60)
    receiver = near_soak.find("program b")
    assert receiver
    if not computes:
        os.kill(receiver.pid, signal.SIGSTOP)
    near_soak.pass_time(seconds * 0.7)
    early = int((folder / "sent").read_text() or 0)
    near_soak.pass_time(seconds * 0.2)
    late = int((folder / "sent").read_text() or 0)
    if computes:
        assert not (folder / "goes-on").exists()
    print(f"the sender was at {early}, and then at {late}, while the receiver did not read")
    near_soak.pass_time(seconds * 0.1)
    if not computes:
        os.kill(receiver.pid, signal.SIGCONT)
    near_soak.pass_time(5)
    near_soak.stop.touch()
    near_soak.wait(120)
    _, sent = near_soak.output("a").split()
    received = near_soak.output("b").split()
    rng, digest = np.random.default_rng(1), hashlib.sha256()
    for index in range(int(sent)):
        digest.update(rng.integers(0, 2**63, size=1 + (index * 7919) % most, dtype=np.int64))
    assert received == [digest.hexdigest(), sent]
    note(messages=int(sent), messages_ahead=late, seconds_without_reading=round(seconds))
    assert near_soak.memory
    near_soak.memory.check(program=1500)
    # The sender has waited for room. A receiver that computes has taken 20 messages.
    assert late == early
    assert int(sent) > late
    assert not computes or late <= 20 + 64 + 1


#: Two programs send each other a message on each of many ports, and then receive as many.
MANY = """\
import hashlib, sys
import numpy as np
import titin

name, count, steps = sys.argv[1], int(sys.argv[3]), int(sys.argv[4])
rng, digest = np.random.default_rng(ord(name)), hashlib.sha256()
sends, receives = ([f"{way}{index}" for index in range(count)] for way in ("out", "in"))
with titin.Instance(o_i=sends, s=receives) as instance:
    instance.reuse()
    for step in range(steps):
        for port in sends:
            mine = rng.integers(0, 2**63, size=rng.integers(1, 500), dtype=np.int64)
            instance.send(port, mine, timestamp=float(step))
        for port in receives:
            digest.update(np.asarray(instance.receive(port).data))
print(digest.hexdigest())
"""


def test_a_thousand_conduits_of_one_link(near_soak: Soak) -> None:
    count, steps = int(amount("CONDUITS", 1000)) // 2, 50
    ports = ", ".join(f"{way}: [{', '.join(f'{name}{index}' for index in range(count))}]"
                      for way, name in (("o_i", "out"), ("s", "in")))  # fmt: skip
    conduits = ", ".join(
        f"{one}.out{index}: {other}.in{index}" for one, other in ("ab", "ba") for index in range(count)
    )
    began = time.monotonic()
    begin(near_soak, MANY, count, steps, a_ports=ports, b_ports=ports, conduits=conduits)
    near_soak.wait(600)
    seconds = time.monotonic() - began
    digests = {}
    for name in "ab":
        rng, digest = np.random.default_rng(ord(name)), hashlib.sha256()
        for _ in range(count * steps):
            digest.update(rng.integers(0, 2**63, size=rng.integers(1, 500), dtype=np.int64))
        digests[name] = digest.hexdigest()
    assert [near_soak.output(name) for name in "ab"] == [digests["b"], digests["a"]]
    note(conduits=2 * count, messages=2 * count * steps, run_seconds=round(seconds))
    assert near_soak.memory
    near_soak.memory.check()


def test_many_pairs_of_programs(near_soak: Soak) -> None:
    count = int(amount("PAIRS", 30))
    near_soak.begin_flow(PAIR * count, most=20_000)
    near_soak.await_programs(2 * count)
    status = near_soak.relays[0].status["peers"][0]
    near_soak.pass_time(20)
    note(programs=2 * count, circuits_at_first=status["circuits"])
    # Each circuit may take 320 KiB.
    near_soak.end(relay=32 + count * 10 * 320 // 1024)
