"""The settings of `titin: links` between two sites."""

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
