"""The settings of `titin: links` and `titin: buffer` between two sites."""

from __future__ import annotations

import sys

import pytest

from .conftest import Sites

SIZE, ROUNDS, RATE = 4_000_000, 3, 8_000_000

#: Two programs that send to each other in turn. The one that begins prints the seconds of all rounds.
PROGRAM = """\
import sys, time

import numpy as np
import titin

role, size, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
data = np.arange(size, dtype="u1")
with titin.Instance(o_i=["out"], s=["in"]) as instance:
    instance.reuse()
    begin = time.monotonic()
    for step in range(rounds):
        if role == "here":
            instance.send("out", data, timestamp=float(step))
        assert np.array_equal(instance.receive("in").data, data)
        if role == "there":
            instance.send("out", data, timestamp=float(step))
    if role == "here":
        print(time.monotonic() - begin)
"""

MODEL = """\
ymmsl_version: v0.2
models:
  pair:
    components:
      here: {{ports: {{o_i: out, s: in}}, implementation: here}}
      there: {{ports: {{o_i: out, s: in}}, implementation: there}}
    conduits: {{here.out: there.in, there.out: here.in}}
programs:
  here: {{executable: {python}, args: [{program}, here, "{size}", "{rounds}"]}}
  there: {{executable: {python}, args: [{program}, there, "{size}", "{rounds}"]}}
titin:
  sites: {{south: {{relay: "127.0.0.1:{local}"}}}}
  hosts:
    localhost: {{components: [here]}}
    far: {{site: south, start: [env], components: [there]}}
  links: {{default: {{compress: never, {settings}}}}}
"""


def seconds(sites: Sites, settings: str) -> float:
    """How long messages in turn take with settings of the link."""
    (sites.folder / "pair.py").write_text(PROGRAM)
    model = MODEL.format(
        python=sys.executable,
        program=sites.folder / "pair.py",
        size=SIZE,
        rounds=ROUNDS,
        local=sites.south.local,
        settings=settings,
    )
    (sites.folder / "model.ymmsl").write_text(model)
    code, out = sites.run()
    assert code == 0, out
    return float((sites.folder / "run/instances/here/stdout.txt").read_text())


@pytest.mark.parametrize("streams", ["streams: 1", "streams: 4", "streams: 4, send_buffer: 64 KiB"])
def test_both_ends_keep_to_the_rate(sites: Sites, streams: str) -> None:
    # The system lets a few bytes of each stream go at once.
    least = 0.8 * 2 * ROUNDS * SIZE / RATE
    assert seconds(sites, f"{streams}, pacing: {RATE // 10**6} MB/s") >= least


COUNT = 600

#: The first program sends messages in a row, and says when it has sent them all. The second takes none before that, or
#: before some seconds are over.
AHEAD = """\
import sys, time
from pathlib import Path

import numpy as np
import titin

role, count, sent, wait = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), float(sys.argv[4])
ports = {"o_i": ["out"]} if role == "here" else {"s": ["in"]}
with titin.Instance(**ports) as instance:
    instance.reuse()
    if role == "here":
        for step in range(count):
            instance.send("out", np.full(1000, step % 251, "u1"), timestamp=float(step))
        sent.touch()
    else:
        end = time.monotonic() + wait
        while not sent.exists() and time.monotonic() < end:
            time.sleep(0.02)
        print("sent before they were received" if sent.exists() else "the sender waits")
        for step in range(count):
            message = instance.receive("in")
            assert message.timestamp == step and (message.data == step % 251).all()
"""


@pytest.mark.parametrize(
    ("buffer", "wait", "said"),
    [
        ("", 60, "sent before they were received"),
        ("buffer: {default: {messages: 64}}", 2, "the sender waits"),
        ("buffer: {default: {bytes: 64 kB}}", 2, "the sender waits"),
    ],
)
def test_a_buffer_without_a_size_takes_what_the_line_holds(sites: Sites, buffer: str, wait: int, said: str) -> None:
    program, sent = sites.folder / "ahead.py", sites.folder / "sent"
    program.write_text(AHEAD)
    arguments = f'"{COUNT}", {sent}, "{wait}"'
    (sites.folder / "model.ymmsl").write_text(
        f"""\
ymmsl_version: v0.2
models:
  ahead:
    components:
      here: {{ports: {{o_i: out}}, implementation: here}}
      there: {{ports: {{s: in}}, implementation: there}}
    conduits: {{here.out: there.in}}
programs:
  here: {{executable: {sys.executable}, args: [{program}, here, {arguments}]}}
  there: {{executable: {sys.executable}, args: [{program}, there, {arguments}]}}
titin:
  sites: {{south: {{relay: "127.0.0.1:{sites.south.local}"}}}}
  hosts:
    localhost: {{components: [here]}}
    far: {{site: south, start: [env], components: [there]}}
  {buffer}
"""
    )
    code, out = sites.run()
    assert code == 0, out
    assert (sites.folder / "run/instances/there/stdout.txt").read_text().strip() == said
