"""Fields: arrays that are spread over the ranks of two programs, between any decompositions of them."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import TITIN
from .cases import pairs
from .conftest import HERE, Build, pair, run

#: Ranks that send and that receive, and the language of the program that adds.
TOGETHER = [(1, 4, "c"), (4, 1, "cpp"), (2, 3, "f90"), (3, 2, "f08"), (4, 4, "cpp"), (5, 12, "c"), (12, 7, "c")]


def model(senders: int, receivers: int, adds: Path, ranks: int, medium: str) -> str:
    """The programs of `fields.py` and `adds`."""
    ports = [f"case{number}" for number in range(len(pairs(senders, receivers)))]
    every = ", ".join(ports)
    conduits = "\n".join(f"      a.{port}: [b.{port}, c.{port}]" for port in ports)
    args = f"args: [{HERE / 'fields.py'}, %s, '{senders}', '{receivers}']"
    python = f"executable: {sys.executable}, {args}"
    media = "".join(f"\n    {end}: {medium}" for end in ("b.there", "b.back", "c.case0", "b.case1", "adds.ask"))
    return f"""ymmsl_version: v0.2
models:
  fields:
    components:
      a: {{description: sends, ports: {{o_i: [{every}, there, ask], s: [back, answer]}}, implementation: a}}
      b: {{description: receives, ports: {{o_i: there, s: [{every}, back]}}, implementation: b}}
      c: {{description: receives, ports: {{s: [{every}]}}, implementation: c}}
      adds: {{description: adds 1, ports: {{f_init: ask, o_f: answer}}, implementation: adds}}
    conduits:
{conduits}
      a.there: b.back
      b.there: a.back
      a.ask: adds.ask
      adds.answer: a.answer
    matching_timelines: {{a: [b, c]}}
programs:
  a: {{{python % "a"}, execution_model: openmpi}}
  b: {{{python % "b"}, execution_model: openmpi}}
  c: {{{python % "c"}}}
  adds: {{executable: {adds}, execution_model: mpich}}
resources:
  fields.a: {{mpi_processes: {senders}}}
  fields.b: {{mpi_processes: {receivers}}}
  fields.adds: {{mpi_processes: {ranks}}}
""" + (f"titin:\n  medium:{media}\n" if medium else "")


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize(("senders", "receivers", "language"), TOGETHER)
def test_receivers_get_what_gathering_and_scattering_gives(
    build: Build, tmp_path: Path, senders: int, receivers: int, language: str
) -> None:
    adds = build("adds", language, "mpich")
    medium = "tcp" if (senders, receivers) == (3, 2) else ""
    done = run(tmp_path, model(senders, receivers, adds, max(1, 5 - senders), medium))
    assert done.returncode == 0, done.stdout
    # What both ends have declared is kept with the run.
    drawn = [TITIN, "plot", "--schedule", "run", "--field", "a.there", "--json"]
    (told,) = json.loads(subprocess.run(drawn, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    assert (told["from"]["port"], told["to"]["port"]) == ("a.there", "b.back")
    assert (told["from"]["ranks"], told["to"]["ranks"]) == (senders, receivers)
    assert sum(message["elements"] for message in told["messages"]) == math.prod(told["from"]["shape"])


def misfits(case: str, ranks: tuple[int, int]) -> str:
    """Both ends as `misfits.py` plays them."""
    programs = [(sys.executable, HERE / "misfits.py", side, case) for side in "ab"]
    return pair(("o_i: x, s: y", "o_i: y, s: x"), "a.x: b.x, b.y: a.y", programs, ranks)


#: What is told of each, whoever is first to see it.
SERIAL = {
    "shapes": "the sender couples 12 × 6 elements ([0:12, 0:6]), the receiver 12 × 7 ([0:12, 0:7])",
    "dims": "the sender couples 12 × 6 elements ([0:12, 0:6]), the receiver 12 × 6 × 1",
    "regions": "the sender couples 3 × 3 elements ([0:3, 0:3]), the receiver 3 × 4 ([1:4, 1:5])",
    "outside": "couples the region [0:3, 0:8], which does not lie in its array of 12 × 6",
    "dtypes": "field on port 'x': its arrays are of ",
    "arrays": "float64, int32, float64",
    "sender ordinary": "its sender sends ordinary messages: declare the field at both ends",
    "receiver ordinary": "the sender of what comes to port 'x' sends a field: receive it by a field",
    "receiver ordinary into": "expected an array",
    "sender declares nothing": "port 'x' is closed: a.x has finished",
    "receiver declares nothing": "1 message from a.x on S port 'x' was never taken",
    "both wait": "deadlock: 2 instances wait for each other in a cycle",
    "too many ranks": "a grid of 2 × 1 processes needs 2 ranks; there are 1",
    "local shape": "field on port 'x': its array is 12 × 6 here, halo and all; one of 2 × 2 was given",
    "local dtype": "field on port 'x': argument 1 is of float32, where the field was declared with float64",
    "local count": "field on port 'x': 2 arrays were given, where it has 1",
    "read only": "b reported an error: titin.errors.TypeMismatch: cannot receive into a numpy.ndarray",
    "twice": "field on port 'x': it has one already",
    "negative": "-6 among the extents",
    "receives less": "3 messages from a.x on S port 'x' were never taken",
    "receives more": "port 'x' is closed: a.x has finished",
}


@pytest.mark.parametrize("case", SERIAL)
def test_ends_that_do_not_fit_are_told(tmp_path: Path, case: str) -> None:
    done = run(tmp_path, misfits(case, (1, 1)))
    assert done.returncode == 1, done.stdout
    assert SERIAL[case] in " ".join(done.stdout.split()), done.stdout


#: The same where several ranks take part: who is named, and what is told.
PARALLEL = [
    ("shapes", (2, 1), "the sender couples 12 × 6 elements ([0:12, 0:6]), the receiver 12 × 7 ([0:12, 0:7])"),
    ("receiver ordinary", (1, 2), "the sender of what comes to port 'x' sends a field: receive it by a field"),
    ("sender ordinary", (1, 2), "its sender sends ordinary messages: declare the field at both ends"),
    ("ranks differ", (1, 2), "b reported an error: rank 1: .* rank 1 declares another one than rank 0"),
    ("a closes early", (2, 1), "b: rank 1 of a has closed the instance, and sends no more, where other ranks go on"),
    ("b closes early", (1, 2), "b reported an error: rank 1: rank 0 has made calls that this rank has not made"),
    ("a raises", (2, 1), "a reported an error: rank 1: ValueError: the pressure is negative"),
    ("b raises", (1, 2), "b reported an error: rank 1: ValueError: the pressure is negative"),
    ("a dies", (2, 1), r"a reported an error: rank \d \(process \d+|a was ended by"),
    ("b dies", (1, 2), r"b reported an error: rank \d \(process \d+|b was ended by"),
]


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize(("case", "ranks", "told"), PARALLEL, ids=[case for case, *_ in PARALLEL])
def test_ranks_that_do_not_fit_are_told(tmp_path: Path, case: str, ranks: tuple[int, int], told: str) -> None:
    done = run(tmp_path, misfits(case, ranks))
    assert done.returncode == 1, done.stdout
    pattern = told if "\\" in told or ".*" in told else re.escape(told)
    assert re.search(pattern, " ".join(done.stdout.split())), done.stdout


def test_more_ranks_than_columns(build: Build, tmp_path: Path) -> None:
    adds = build("adds", "c", "mpich")
    done = run(tmp_path, model(1, 1, adds, 40, ""))
    assert done.returncode == 0, done.stdout


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("medium", ["shm", "tcp"])
@pytest.mark.parametrize("ranks", [(1, 1), (2, 3)])
def test_large_pieces_go_in_parts(tmp_path: Path, ranks: tuple[int, int], medium: str) -> None:
    programs = [(sys.executable, HERE / "large.py", side, count) for side, count in zip("ab", ranks, strict=True)]
    model = pair(("o_i: x", "s: x"), "a.x: b.x", programs, ranks)
    done = run(tmp_path, f"{model}titin: {{medium: {{b.x: {medium}}}}}\n")
    assert done.returncode == 0, done.stdout


PASSED_OVER = """\
import sys
import numpy as np
import titin

sends = sys.argv[1] == "a"
with titin.Instance(**{"o_i" if sends else "s": ["x"]}) as instance:
    instance.reuse()
    field = instance.field("x", (8,), float)
    mine = np.arange(8.0) if sends else np.zeros(8)
    if sends:
        field.send(mine, timestamp=0.0)
    else:
        told = 0
        for call in instance.receive_any, instance.try_receive, instance.receive:
            try:
                call("x")
            except titin.TypeMismatch as error:
                told += "receive it by a field" in str(error)
        field.receive(mine)
        assert told == 3 and (mine == np.arange(8.0)).all()
"""


def test_an_ordinary_call_leaves_a_field_to_the_next_one(tmp_path: Path) -> None:
    (tmp_path / "passed.py").write_text(PASSED_OVER)
    programs = [(sys.executable, tmp_path / "passed.py", side) for side in "ab"]
    done = run(tmp_path, pair(("o_i: x", "s: x"), "a.x: b.x", programs))
    assert done.returncode == 0, done.stdout


UNEQUAL = """\
import sys
import numpy as np
import titin
from mpi4py import MPI

role, mode, who, what = sys.argv[1:]
sends = role == "a"
with titin.Instance(**{"o_i" if sends else "s": ["x"]}, comm=MPI.COMM_WORLD) as instance:
    instance.reuse()
    field = instance.field("x", (8,), float, owned=titin.Grid((instance.ranks,)))
    odd = sends and instance.rank == int(who)
    mine = np.zeros(8 // instance.ranks)
    for step in range({"fewer": 5, "none": 0, "withdraws": 3}.get(what, 6) if odd else 6):
        mine[:] = step
        if not sends:
            try:
                # The latest version may be an old one as often as that: a receiver that has gone hears of nothing.
                stamps = field.receive(mine, at=float(step) if mode == "pull" else None)
            except titin.PortClosed:
                break
            assert (mine == stamps.timestamp).all(), (stamps, mine)
        elif odd and what == "caught" and step == 2:
            try:
                field.send(np.zeros(3), timestamp=float(step))
            except titin.Error:
                print("passed over")
        else:
            field.send(mine, timestamp=float(step))
    if odd and what == "withdraws":
        field.withdraw()
"""


def told(mode: str, who: int, what: str) -> list[str]:
    """What the report may say of a rank that sends otherwise than the others: either side may find it out first."""
    odd = {"caught": 5, "fewer": 5, "none": 0, "withdraws": 3}[what]
    by_rank_1, by_rank_0 = (6, odd) if who == 0 else (odd, 6)
    count = f"rank 1 has sent it {by_rank_1} times, and rank 0"
    texts = [f"{count} {by_rank_0} times", f"{count} at least "]
    if what == "caught":
        ours, theirs = (3, 2) if who == 1 else (2, 3)
        texts.append(f"rank 1 of a has sent its part of time {ours}, where rank 0 has sent that of time {theirs}")
    elif mode == "push":
        texts.append("rank 1 of a has sent a part that was never taken")
        texts.append("rank 1 of a has closed the instance, and sends no more, where other ranks go on")
        texts.append(
            "rank 1 of b has finished and takes no more of it: one side makes more steps than the other, or ranks"
        )
    return texts


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("mode", ["push", "pull"])
@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("what", ["caught", "fewer", "none", "withdraws"])
def test_ranks_that_do_not_send_alike_are_noticed(tmp_path: Path, mode: str, who: int, what: str) -> None:
    (tmp_path / "unequal.py").write_text(UNEQUAL)
    programs = [(sys.executable, tmp_path / "unequal.py", side, mode, who, what) for side in "ab"]
    kept = "titin: {fields: {b.x: {mode: pull, versions: 9, full: wait}}}\n" if mode == "pull" else ""
    done = run(tmp_path, pair(("o_i: x", "s: x"), "a.x: b.x", programs, (2, 2)) + kept)
    assert done.returncode == 1, done.stdout
    first = " ".join(done.stdout[done.stdout.index("First:") :].split())
    assert any(text in first for text in told(mode, who, what)), first
