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

#: Numbers of sending and of receiving ranks, and the language of the program that adds.
TOGETHER = [
    (1, 1, "c"),
    (1, 4, "c"),
    (4, 1, "cpp"),
    (2, 3, "f90"),
    (3, 2, "f08"),
    (4, 4, "cpp"),
    (5, 12, "c"),
    (12, 7, "c"),
]


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
    # The declarations of both ends are kept with the run.
    drawn = [TITIN, "plot", "--schedule", "run", "--field", "a.there", "--json"]
    (told,) = json.loads(subprocess.run(drawn, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    assert (told["from"]["port"], told["to"]["port"]) == ("a.there", "b.back")
    assert (told["from"]["ranks"], told["to"]["ranks"]) == (senders, receivers)
    assert sum(message["elements"] for message in told["messages"]) == math.prod(told["from"]["shape"])


def misfits(case: str, ranks: tuple[int, int]) -> str:
    """The model whose two ends `misfits.py` plays."""
    programs = [(sys.executable, HERE / "misfits.py", side, case) for side in "ab"]
    return pair(("o_i: x, s: y", "o_i: y, s: x"), "a.x: b.x, b.y: a.y", programs, ranks)


#: The text of the report for each case, whichever end notices first.
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
    "local list": "cannot send a list: an array is needed; send numpy.asarray of it",
    "local dtype": "field on port 'x': argument 1 is of float32, where the field was declared with float64",
    "local count": "field on port 'x': 2 arrays were given, where it has 1",
    "read only": "b reported an error: titin.errors.TypeMismatch: cannot receive into a numpy.ndarray",
    "twice": "field on port 'x': it has one already",
    "negative": "-6 is among the extents",
    "receives less": "3 messages from a.x on S port 'x' were never taken",
    "receives more": "port 'x' is closed: a.x has finished",
}


@pytest.mark.parametrize("case", SERIAL)
def test_ends_that_do_not_fit_are_told(tmp_path: Path, case: str) -> None:
    done = run(tmp_path, misfits(case, (1, 1)))
    assert done.returncode == 1, done.stdout
    assert SERIAL[case] in " ".join(done.stdout.split()), done.stdout


#: The same with several ranks. The report names the instance and the rank.
PARALLEL = [
    ("shapes", (2, 1), "the sender couples 12 × 6 elements ([0:12, 0:6]), the receiver 12 × 7 ([0:12, 0:7])"),
    ("receiver ordinary", (1, 2), "the sender of what comes to port 'x' sends a field: receive it by a field"),
    ("sender ordinary", (1, 2), "its sender sends ordinary messages: declare the field at both ends"),
    ("ranks differ", (1, 2), "b reported an error: rank 1: .* rank 1 declares another one than rank 0"),
    (
        "a closes early",
        (2, 1),
        "field on port .x.: rank 1 .*(has sent it 1 times, and rank 0|has closed the instance, or withdrawn the field)",
    ),
    (
        "b closes early",
        (1, 2),
        "b reported an error: rank (1: rank 0 has made calls that this rank|0: .*rank 1 has received it 1 times).*",
    ),
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
@pytest.mark.parametrize("medium", ["shm", "tcp", "file"])
@pytest.mark.parametrize("way", ["rows", "columns"])
@pytest.mark.parametrize("ranks", [(1, 1), (2, 3)])
def test_large_pieces_go_in_parts(tmp_path: Path, ranks: tuple[int, int], way: str, medium: str) -> None:
    programs = [(sys.executable, HERE / "large.py", side, count, way) for side, count in zip("ab", ranks, strict=True)]
    model = pair(("o_i: x", "s: x"), "a.x: b.x", programs, ranks)
    done = run(tmp_path, f"{model}titin: {{medium: {{b.x: {medium}}}}}\n")
    assert done.returncode == 0, done.stdout


#: The number of exchanges before the call in question. After 100, that call meets the short way: the first 61 messages
#: of a conduit are timed, and a timed message goes the long way.
BEFORE = [0, 100]

PASSED_OVER = """\
import sys
import numpy as np
import titin

sends, before = sys.argv[1] == "a", int(sys.argv[2])
with titin.Instance(**{"o_i" if sends else "s": ["x"]}) as instance:
    instance.reuse()
    field = instance.field("x", (8,), float)
    mine = np.arange(8.0) if sends else np.zeros(8)
    for turn in range(before):
        field.send(mine + turn, timestamp=turn) if sends else field.receive(mine)
    if sends:
        field.send(mine, timestamp=before)
    else:
        told = 0
        for call in instance.receive_any, instance.try_receive, instance.receive:
            try:
                call("x")
            except titin.UsageError as error:
                told += "receive it by the field" in str(error)
        field.receive(mine)
        assert told == 3 and (mine == np.arange(8.0)).all()
"""


@pytest.mark.parametrize("before", BEFORE)
def test_an_ordinary_call_leaves_a_field_to_the_next_one(tmp_path: Path, before: int) -> None:
    (tmp_path / "passed.py").write_text(PASSED_OVER)
    programs = [(sys.executable, tmp_path / "passed.py", side, before) for side in "ab"]
    done = run(tmp_path, pair(("o_i: x", "s: x"), "a.x: b.x", programs))
    assert done.returncode == 0, done.stdout


#: `before` sends a mesh once, and `b` gets it again with each use, so the run counts the steps of all instances. `a`
#: and `b` exchange a field in each use.
BESIDE = """\
import os
import sys

import numpy as np
import titin

role, extent = sys.argv[1], int(sys.argv[2])
comm = None
if "OMPI_COMM_WORLD_SIZE" in os.environ:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
ports = {
    "before": {"o_f": ["mesh"]},
    "a": {"o_i": ["x"], "s": ["y"]},
    "b": {"f_init": ["mesh", "x"], "o_f": ["y"]},
}
with titin.Instance(**ports[role], comm=comm) as instance:
    owned = titin.Grid((comm.size if comm else 1,))
    declare = lambda name: instance.field(name, (extent,), float, owned=owned)
    if role == "before":
        instance.reuse()
        instance.send("mesh", 7, timestamp=0.0)
    elif role == "a":
        instance.reuse()
        x, y = declare("x"), declare("y")
        mine = np.zeros(extent // instance.ranks)
        for step in range(80):
            x.send(mine + step, timestamp=float(step))
            y.receive(mine)
            assert (mine == 2 * step + 1).all(), (step, mine)
            mine[:] = step + 1
    else:
        x, y = declare("x"), declare("y")
        mine = np.zeros(extent // instance.ranks)
        for step in range(80):
            assert instance.reuse()
            assert instance.receive("mesh").data == 7
            stamps = x.receive(mine)
            assert stamps.timestamp == step
            y.send(mine + 1, timestamp=float(step))
        assert not instance.reuse()
"""


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("extent", [8, 1200, 600_000])
@pytest.mark.parametrize("ranks", [(1, 1), (1, 2), (2, 2)])
def test_a_field_goes_beside_a_conduit_that_repeats(tmp_path: Path, ranks: tuple[int, int], extent: int) -> None:
    (tmp_path / "beside.py").write_text(BESIDE)
    programs, resources = [], []
    for name, count in [("before", 1), ("a", ranks[0]), ("b", ranks[1])]:
        mpi = ", execution_model: openmpi" if count > 1 else ""
        args = f"args: [{tmp_path / 'beside.py'}, {name}, '{extent}']"
        programs.append(f"{name}: {{executable: {sys.executable}, {args}{mpi}}}")
        resources.append(f"beside.{name}: {{{'mpi_processes' if count > 1 else 'threads'}: {count}}}")
    done = run(
        tmp_path,
        f"""ymmsl_version: v0.2
models:
  beside:
    components:
      before: {{description: makes the mesh, ports: {{o_f: mesh}}, implementation: before}}
      a: {{description: calls, ports: {{o_i: x, s: y}}, implementation: a}}
      b: {{description: is called, ports: {{f_init: [mesh, x], o_f: y}}, implementation: b}}
    conduits: {{before.mesh: repeat b.mesh, a.x: b.x, b.y: a.y}}
programs:
  {programs[0]}
  {programs[1]}
  {programs[2]}
resources: {{{", ".join(resources)}}}
""",
    )
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


#: One rank of the sender closes at once. The others couple both ways, or send more than buffers hold.
DESERTER = """
import sys

import numpy as np
import titin
from mpi4py import MPI

role, both = sys.argv[1], sys.argv[2] == "both ways"
sends = role == "a"
o_i, s = ("x", "y") if sends else ("y", "x")
with titin.Instance(o_i=[o_i], s=[s], comm=MPI.COMM_WORLD) as instance:
    instance.reuse()
    there, back = (instance.field(name, (8,), float, owned=titin.Grid((instance.ranks,))) for name in "xy")
    mine = np.zeros(8 // instance.ranks)
    for step in range(0 if sends and instance.rank else 200):
        if not sends:
            there.receive(mine)
        else:
            there.send(mine, timestamp=step)
        if both and sends:
            back.receive(mine)
        elif both:
            back.send(mine, timestamp=step)
"""


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("way", ["both ways", "one way"])
def test_a_rank_that_closes_early_is_named_where_all_wait_for_it(tmp_path: Path, way: str) -> None:
    (tmp_path / "deserter.py").write_text(DESERTER)
    programs = [(sys.executable, tmp_path / "deserter.py", side, way) for side in "ab"]
    done = run(tmp_path, pair(("o_i: x, s: y", "o_i: y, s: x"), "a.x: b.x, b.y: a.y", programs, (2, 2)))
    assert done.returncode == 1, done.stdout
    first = " ".join(done.stdout[done.stdout.index("First:") :].split())
    # In the other way the rank itself notices the calls that it has left out.
    texts = (
        "field on port 'x': rank 1 has sent it 0 times, and rank 0 ",
        "rank 1: rank 0 has made calls that this rank",
    )
    assert any(text in first for text in texts), first


#: The sender withdraws the field, or its rank 0 closes, or leaves out a send, while the receiver wants more of the
#: field.
WITHOUT = """
import os
import sys

import numpy as np
import titin

role, what, both, before = sys.argv[1], sys.argv[2], sys.argv[3] == "both ways", int(sys.argv[4])
comm = None
if "OMPI_COMM_WORLD_SIZE" in os.environ:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
sends = role == "a"
o_i, s = ("x", "y") if sends else ("y", "x")
with titin.Instance(o_i=[o_i], s=[s], comm=comm) as instance:
    instance.reuse()
    ranks, rank = (comm.size, comm.rank) if comm else (1, 0)
    there, back = (instance.field(name, (8,), float, owned=titin.Grid((ranks,))) for name in "xy")
    mine = np.zeros(8 // ranks)
    for step in range(-before, 6):
        if sends and what == "withdraws" and step == 0:
            there.withdraw()
            break
        if sends and what == "closes" and rank == 0 and step == 3:
            # Not before rank 1 has sent more: a receiver that fails sooner leaves no sign of that.
            comm.Barrier()
            break
        if not sends:
            there.receive(mine)
        elif not (what == "leaves out" and rank == 0 and step == 3):
            there.send(mine, timestamp=step)
        if sends and what == "closes" and step == (3 if both else 5):
            comm.Barrier()
        if both and sends:
            back.receive(mine)
        elif both:
            back.send(mine, timestamp=step)
"""


def first_without(tmp_path: Path, what: str, way: str, ranks: int, before: int) -> str:
    """The first failure in the report."""
    (tmp_path / "without.py").write_text(WITHOUT)
    programs = [(sys.executable, tmp_path / "without.py", side, what, way, before) for side in "ab"]
    done = run(tmp_path, pair(("o_i: x, s: y", "o_i: y, s: x"), "a.x: b.x, b.y: a.y", programs, (ranks, ranks)))
    assert done.returncode == 1, done.stdout
    return " ".join(done.stdout[done.stdout.index("First:") :].split())


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("ranks", [1, 2])
def test_who_withdraws_a_field_that_is_still_wanted_is_named(tmp_path: Path, ranks: int, before: int) -> None:
    first = first_without(tmp_path, "withdraws", "one way", ranks, before)
    told = f"field on port 'x': the program has withdrawn it after {before} sends"
    assert re.match(f"First: a left its peers waiting: (rank 0: )?{told}", first), first
    assert "Affected: b: " in first, first


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("way", ["both ways", "one way"])
@pytest.mark.parametrize("what", ["closes", "leaves out"])
@pytest.mark.parametrize("before", BEFORE)
def test_rank_0_that_sends_less_than_the_others_is_named(tmp_path: Path, what: str, way: str, before: int) -> None:
    first = first_without(tmp_path, what, way, 2, before)
    texts = [r"rank 1 has sent it \d+ times, and rank 0 \d+ times", "rank 0 of a has closed the instance"]
    by_sender = rf"a reported an error: rank \d: .*({'|'.join(texts)})"
    # The receiver notices parts of unlike times as well, and may be the first to report.
    times = "rank 1 of a has sent its part of time 3, where rank 0 has sent that of time 4"
    by_receiver = rf"b reported an error: rank \d: .*{times}"
    assert re.match(f"First: ({by_sender}|{by_receiver})", first), first


#: A receiver's call is interrupted by a signal, or its time is over, when the part of one rank has come and the part of
#: another rank has not.
INTERRUPTED = """
import pathlib
import signal
import sys
import time

import numpy as np
import titin
from mpi4py import MPI


class Alarm(Exception):
    pass


def ring(*_):
    raise Alarm


role, folder, how, goes_on = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4] == "again"
sends = role == "a"
with titin.Instance(**{"o_i" if sends else "s": ["x"]}, comm=MPI.COMM_WORLD if sends else None) as instance:
    instance.reuse()
    field = instance.field("x", (8,), float, owned=titin.Grid((instance.ranks,)))
    memory = np.zeros(16 // instance.ranks)
    u = memory[::2]
    if sends:
        while instance.rank == 1 and not (folder / "go").exists():
            time.sleep(0.01)
        field.send(u + 1, timestamp=0.0)
    else:
        signal.signal(signal.SIGALRM, ring)
        while u[0] != 1:
            try:
                if how == "signal":
                    signal.setitimer(signal.ITIMER_REAL, 0.2)
                field.receive(u, timeout=0.2 if how == "timeout" else None)
            except Alarm:
                pass
            except titin.Timeout as error:
                assert u[0] != 1 or "not all of it has come in the time given" in str(error), error
        for other in np.zeros(8), memory[:8]:
            try:
                field.receive(other)
                raise AssertionError("other arrays")
            except titin.UsageError as error:
                assert "with the same arrays" in str(error), error
        (folder / "go").touch()
        if goes_on:
            field.receive(u)
            assert (u == 1).all(), u
"""


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("how", ["signal", "timeout"])
@pytest.mark.parametrize("then", ["again", "closes"])
def test_a_receive_that_was_broken_off_goes_on_with_the_same_arrays(tmp_path: Path, then: str, how: str) -> None:
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    programs = [(sys.executable, tmp_path / "interrupted.py", side, tmp_path, how, then) for side in "ab"]
    done = run(tmp_path, pair(("o_i: x", "s: x"), "a.x: b.x", programs, (2, 1)))
    assert (done.returncode == 0) == (then == "again"), done.stdout
    text = "field on port 'x': a call was interrupted, or its time was over, and it was not made again"
    assert (text in " ".join(done.stdout.split())) == (then == "closes"), done.stdout


#: Both sides send and receive in each step. One rank of one side leaves out a call, and then no instance closes.
LEFT_OUT = """
import sys
import numpy as np
import titin
from mpi4py import MPI

role, side, call, who = *sys.argv[1:4], int(sys.argv[4])
ports = {"o_i": ["x"], "s": ["y"]} if role == "a" else {"f_init": ["x"], "o_f": ["y"]}
with titin.Instance(**ports, comm=MPI.COMM_WORLD) as instance:
    ranks = instance.ranks
    x, y = (instance.field(port, (12,), float, owned=titin.Grid((ranks,))) for port in "xy")
    u, step = np.zeros(12 // ranks), 0

    def makes(what):
        return (role, instance.rank) != (side, who) or (call, step) not in [(what, 2), ("both", 3)]

    while instance.reuse():
        for _ in range(4 if role == "a" else 1):
            if role == "b" and makes("receive"):
                x.receive(u)
            if makes("send"):
                (x if role == "a" else y).send(u, timestamp=float(step))
            if role == "a" and makes("receive"):
                y.receive(u)
            step += 1
"""


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("call", ["send", "receive"])
@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize(("who", "ranks"), [(0, 2), (1, 2), (2, 3)])
def test_a_rank_that_leaves_out_a_call_is_named_while_all_wait(
    tmp_path: Path, who: int, ranks: int, side: str, call: str
) -> None:
    (tmp_path / "left_out.py").write_text(LEFT_OUT)
    programs = [(sys.executable, tmp_path / "left_out.py", role, side, call, who) for role in "ab"]
    counts = (ranks, 2) if side == "a" else (2, ranks)
    model = pair(("o_i: x, s: y", "f_init: x, o_f: y"), "a.x: b.x, b.y: a.y", programs, counts)
    done = run(tmp_path, model.replace("    matching_timelines: {a: [b]}\n", ""))
    assert done.returncode == 1, done.stdout
    first = " ".join(done.stdout[done.stdout.index("First:") :].split())
    theirs, ours = (3, 2) if who == 0 else (2, 3)
    # Any of several calls may report a receive that was left out.
    told = rf"rank {who or 1} has sent it {theirs} times, and rank 0 {ours} times" if call == "send" else ""
    assert re.match(rf"First: {side} reported an error: rank \d: .*{told}", first), first


@pytest.mark.usefixtures("python")
def test_a_rank_in_another_call_is_named_while_all_wait(tmp_path: Path) -> None:
    (tmp_path / "left_out.py").write_text(LEFT_OUT)
    programs = [(sys.executable, tmp_path / "left_out.py", role, "a", "both", 1) for role in "ab"]
    model = pair(("o_i: x, s: y", "f_init: x, o_f: y"), "a.x: b.x, b.y: a.y", programs, (2, 1))
    done = run(tmp_path, model.replace("    matching_timelines: {a: [b]}\n", ""))
    assert done.returncode == 1, done.stdout
    first = " ".join(done.stdout[done.stdout.index("First:") :].split())
    assert re.match(r"First: a .*: rank 1 calls reuse, but rank 0 calls receive on port 'y'", first), first


#: A receiver's second rank leaves out a call at a step that is not coupled, so its later calls get the fields of later
#: steps.
OUT_OF_STEP = """
import sys
import numpy as np
import titin
from mpi4py import MPI

sends = sys.argv[1] == "a"
with titin.Instance(**{"o_i" if sends else "s": ["x"]}, comm=None if sends else MPI.COMM_WORLD) as instance:
    instance.reuse()
    field = instance.field("x", (8,), float, owned=titin.Grid((instance.ranks,)))
    u = np.zeros(8 // instance.ranks)
    for step in range(4):
        if sends:
            field.send(u, timestamp=float(step))
        elif (instance.rank, step) != (1, 1):
            field.receive(u)
"""


@pytest.mark.usefixtures("python")
def test_a_rank_that_leaves_out_a_receive_at_a_step_that_is_not_coupled_is_named(tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text(OUT_OF_STEP)
    programs = [(sys.executable, tmp_path / "step.py", side) for side in "ab"]
    model = pair(("o_i: x", "s: x"), "a.x: b.x", programs, (1, 2))
    done = run(tmp_path, model + "titin: {fields: {b.x: {every: 2}}}\n")
    assert done.returncode == 1, done.stdout
    first = " ".join(done.stdout[done.stdout.index("First:") :].split())
    assert "rank 1 has received it 3 times, and rank 0 4 times: all ranks receive as often as rank 0" in first, first


#: One rank of the sender withdraws the field, and then no instance closes.
WITHDRAWN = """
import sys
import numpy as np
import titin
from mpi4py import MPI

role, mode, who = sys.argv[1], sys.argv[2], int(sys.argv[3])
sends = role == "a"
ports = {"o_i": ["x", "z"], "s": ["y"]} if sends else {"o_i": ["y"], "s": ["x", "z"]}
with titin.Instance(**ports, comm=MPI.COMM_WORLD) as instance:
    instance.reuse()
    x = instance.field("x", (12,), float, owned=titin.Grid((instance.ranks,)))
    u = np.zeros(12 // instance.ranks)
    if sends:
        x.send(u, timestamp=0.0)
        if instance.rank == who:
            x.withdraw()
        instance.receive("y")
    else:
        x.receive(u, at=0.0 if mode == "pull" else None)
        try:
            x.receive(u, at=1.0 if mode == "pull" else None)
        except titin.PortClosed:
            instance.receive("z")
"""


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("mode", ["push", "pull"])
@pytest.mark.parametrize(("who", "ranks"), [(0, 2), (1, 2), (2, 3)])
def test_a_rank_that_withdraws_alone_is_named_while_all_wait(tmp_path: Path, who: int, ranks: int, mode: str) -> None:
    (tmp_path / "withdrawn.py").write_text(WITHDRAWN)
    programs = [(sys.executable, tmp_path / "withdrawn.py", role, mode, who) for role in "ab"]
    ports = "o_i: [x, z], s: y", "o_i: y, s: [x, z]"
    model = pair(ports, "a.x: b.x, a.z: b.z, b.y: a.y", programs, (ranks, 2))
    kept = "titin: {fields: {b.x: {mode: pull, versions: 9}}}\n" if mode == "pull" else ""
    done = run(tmp_path, model + kept)
    assert done.returncode == 1, done.stdout
    first = " ".join(done.stdout[done.stdout.index("First:") :].split())
    withdraw, receive = "withdraw of the field on port 'x'", "receive on port 'y'"
    alone, others = (withdraw, receive) if who else (receive, withdraw)
    assert re.match(rf"First: a .*: rank {who or '[1-9]'} calls {alone}, but rank 0 calls {others}", first), first


def told(mode: str, who: int, what: str) -> list[str]:
    """The possible texts of the report about a rank that sends otherwise than the others: either side may notice
    first."""
    odd = {"caught": 5, "fewer": 5, "none": 0, "withdraws": 3}[what]
    # A rank that has closed is reported as soon as rank 0 is ahead.
    texts = [
        f"rank 1 has sent it {odd} times, and rank 0 " if who else f"rank 1 has sent it 6 times, and rank 0 {odd} times"
    ]
    if what == "withdraws":
        alone = "(in withdraw of the field on port 'x')"
        texts.append(alone if who else "rank 0 has made calls that this rank has not made")
    if what == "caught":
        ours, theirs = (3, 2) if who == 1 else (2, 3)
        texts.append(f"rank 1 of a has sent its part of time {ours}, where rank 0 has sent that of time {theirs}")
    elif mode == "push":
        texts.append("rank 1 of a has sent a part that was never taken")
        texts.append("rank 1 of a has closed the instance, or withdrawn the field, where its rank 0 goes on")
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
