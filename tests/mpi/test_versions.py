"""Fields are coupled as the description says: at some steps, in part, or in versions that the receiver takes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from .conftest import HERE, pair, run

#: The text under `titin: fields` for each case of `versions.py`.
CASES = {
    "latest": "versions: 2",
    "at": "versions: 3",
    "early": "versions: 9",
    "wait": "versions: 2, full: wait",
    "withdrawn": "versions: 2",
    "leaves": "versions: 2",
    "waiting": "versions: 3, full: wait",
    "raised": "versions: 1, full: wait",
    "steps": "versions: 4, sender: {from: 2, until: 11, every: 3}",
    "last": "versions: 2, full: wait, sender: {until: 5}",
    "plain": "versions: 9, until: 5",
    "patient": "versions: 2, full: wait",
    "ordinary": "versions: 3",
    "nothing": "versions: 1",
    "alone": "versions: 1",
}

RANKS = [(1, 1), (3, 2), (1, 3), (2, 1)]


def model(case: str, ranks: tuple[int, int], pattern: str, medium: str) -> str:
    """The two programs of `versions.py`."""
    ports = "o_i: [u, go], s: done", "o_i: done, s: [u, go]"
    programs = [(sys.executable, HERE / "versions.py", side, case) for side in ("sender", "receiver")]
    both = pair(ports, "a.u: b.u, a.go: b.go, b.done: a.done", programs, ranks)
    return f"""{both}titin:
  fields:
    b.u: {{mode: pull, {pattern}}}
  medium: {{b.go: {medium}, b.u: {medium}}}
"""


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("ranks", RANKS, ids=lambda ranks: "to".join(map(str, ranks)))
@pytest.mark.parametrize("case", CASES)
def test_a_receiver_takes_the_versions_that_it_wants(tmp_path: Path, case: str, ranks: tuple[int, int]) -> None:
    done = run(tmp_path, model(case, ranks, CASES[case], "tcp" if ranks == (2, 1) else "shm"))
    assert done.returncode == 0, done.stdout


@pytest.mark.usefixtures("python")
def test_all_ranks_ask_for_the_same_time(tmp_path: Path) -> None:
    done = run(tmp_path, model("apart", (1, 3), "versions: 9", "shm"))
    assert done.returncode == 1, done.stdout
    assert re.search(
        r"rank [12] calls receive on port 'u' at [23], but rank 0 calls receive on port 'u' at 1:", done.stdout
    )


EARLY = """\
import sys
import time
from pathlib import Path

import numpy as np
import titin

comm = None
if sys.argv[2] != "1":
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
finished = Path(sys.argv[3])
if sys.argv[1] == "b":
    with titin.Instance(s=["u"]) as instance:
        instance.reuse()
        instance.field("u", (6,), float)
    finished.touch()
else:
    with titin.Instance(o_i=["u"], comm=comm) as instance:
        instance.reuse()
        while not finished.exists():
            time.sleep(0.01)
        field = instance.field("u", (6,), float, owned=titin.Grid((instance.ranks,)))
        for t in range(4):
            field.send(np.zeros(field.extents), timestamp=float(t))
"""


@pytest.mark.parametrize("pattern", ["versions: 1, full: wait", "versions: 1, until: 2"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_receiver_that_has_finished_before_the_sender_declares_holds_nobody_up(
    tmp_path: Path, ranks: int, pattern: str
) -> None:
    (tmp_path / "early.py").write_text(EARLY)
    programs = [(sys.executable, tmp_path / "early.py", side, ranks, tmp_path / "finished") for side in "ab"]
    both = pair(("o_i: u", "s: u"), "a.u: b.u", programs, (ranks, 1))
    done = run(tmp_path, f"{both}titin: {{fields: {{b.u: {{mode: pull, {pattern}}}}}}}\n")
    assert done.returncode == 0, done.stdout


#: The workflow of XpressSpace (Concurrency Computat. 26, 2014, figure 3 and listing 4), with a hundredth of its steps.
WORKFLOW = f"""ymmsl_version: v0.2
models:
  workflow:
    components:
      app1: {{description: produces both, ports: {{o_i: [temperature, velocity]}}, implementation: app1}}
      app2: {{description: takes temperature, ports: {{s: temperature}}, implementation: app2}}
      app3: {{description: takes velocity, ports: {{s: velocity}}, implementation: app3}}
    conduits: {{app1.temperature: app2.temperature, app1.velocity: app3.velocity}}
programs:
  app1: {{executable: {sys.executable}, args: [{HERE / "workflow.py"}, app1], execution_model: openmpi}}
  app2: {{executable: {sys.executable}, args: [{HERE / "workflow.py"}, app2], execution_model: openmpi}}
  app3: {{executable: {sys.executable}, args: [{HERE / "workflow.py"}, app3]}}
resources:
  workflow.app1: {{mpi_processes: 3}}
  workflow.app2: {{mpi_processes: 2}}
titin:
  fields:
    app2.temperature: {{from: 1, until: 20}}
    app3.velocity: {{from: 1, until: 10, every: 4, region: [[0, 0], [12, 5]]}}
"""


@pytest.mark.usefixtures("python")
def test_the_description_says_what_is_coupled_at_which_steps(tmp_path: Path) -> None:
    done = run(tmp_path, WORKFLOW)
    assert done.returncode == 0, done.stdout


@pytest.mark.usefixtures("python")
def test_a_region_that_does_not_fit_is_refused_where_it_is_declared(tmp_path: Path) -> None:
    done = run(tmp_path, WORKFLOW.replace("[12, 5]", "[12, 50]"))
    assert done.returncode != 0
    said = "field on port 'velocity': the description (titin: fields) couples the region [0:12, 0:50]"
    assert said in done.stdout, done.stdout


PLAIN = """\
import sys
import titin

sends = sys.argv[1] == "a"
with titin.Instance(**({"o_i": ["u", "go"]} if sends else {"s": ["u", "go"]})) as instance:
    instance.reuse()
    for port in "u", "go":
        instance.send(port, 1.0, timestamp=0.0) if sends else instance.receive(port)
"""


def test_a_pattern_of_a_port_without_a_field_is_told(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    done = run(tmp_path, serial(tmp_path / "plain.py") + "titin: {fields: {b.u: {every: 2}}}\n")
    assert done.returncode == 0, done.stdout
    said = '"titin: fields" in the description couples u with a.u, but the program has no field on it'
    assert said in done.stdout, done.stdout


def serial(script: Path) -> str:
    """Two serial programs in Python. The first sends on two ports."""
    programs = [(sys.executable, script, side) for side in "ab"]
    return pair(("o_i: [u, go]", "s: [u, go]"), "a.u: b.u, a.go: b.go", programs)


LAYOUTS = """\
import sys
import numpy as np
import titin

sends = sys.argv[1] == "a"
w = np.arange(12.0).reshape(3, 4)
if sends:
    arrays = [np.asfortranarray(w), w.ravel(), np.stack([w, -w], -1)[..., 0], w.ravel()]
else:
    arrays = [np.zeros((3, 4), order="F"), np.zeros(12), np.zeros((3, 8))[:, ::2], np.zeros(12)]
with titin.Instance(**({"o_i": ["u", "go"]} if sends else {"s": ["u", "go"]})) as instance:
    instance.reuse()
    field = instance.field("u", w.shape, float)
    for array in arrays:
        field.send(array, timestamp=0.0) if sends else field.receive(array)
        assert np.array_equal(array.reshape(3, 4), w), array
"""


def test_what_an_array_says_of_itself_holds_for_that_one_alone(tmp_path: Path) -> None:
    (tmp_path / "layouts.py").write_text(LAYOUTS)
    done = run(tmp_path, serial(tmp_path / "layouts.py"))
    assert done.returncode == 0, done.stdout


UNDECLARED = """\
import sys
import numpy as np
import titin

sends = sys.argv[1] == "a"
with titin.Instance(**({"o_i": ["u", "go"]} if sends else {"s": ["u", "go"]})) as instance:
    instance.reuse()
    if not sends:
        instance.receive("go")
    field = instance.field("u", (4,), float)
    field.send(np.zeros(4), timestamp=0.0) if sends else field.receive(np.zeros(4))
    if sends:
        instance.send("go", timestamp=0.0)
"""


def test_who_waits_for_a_field_to_be_declared_is_part_of_a_deadlock(tmp_path: Path) -> None:
    (tmp_path / "undeclared.py").write_text(UNDECLARED)
    done = run(tmp_path, serial(tmp_path / "undeclared.py"))
    assert done.returncode != 0
    assert "deadlock: 2 instances wait for each other in a cycle" in done.stdout, done.stdout
    assert "a waits on u, for b to declare the field at its end, b.u" in done.stdout, done.stdout


#: The sender closes. Its receiver takes the last version only after other sends, which the sender never takes.
CLOSING = """\
import sys
import numpy as np
import titin

role, back = sys.argv[1:]
sends = role == "a"
with titin.Instance(**({"o_i": ["u"], "s": ["back"]} if sends else {"o_i": ["back"], "s": ["u"]})) as instance:
    instance.reuse()
    u = instance.field("u", (4,), float)
    if sends:
        u.send(np.zeros(4), timestamp=0.0)
    elif back == "field":
        instance.field("back", (4,), float).send(np.zeros(4), timestamp=0.0)
    else:
        for t in range(9):
            instance.send("back", timestamp=float(t))
    if not sends:
        u.receive(np.zeros(4), at=0.0)
"""


@pytest.mark.parametrize(
    ("back", "told"),
    [
        ("messages", "from b.back on S port 'back' were never taken"),
        ("field", "a waits for b.u to take the last version of the field on u, to close"),
    ],
)
def test_who_closes_while_its_receiver_waits_for_it_is_not_stuck_untold(tmp_path: Path, back: str, told: str) -> None:
    (tmp_path / "closing.py").write_text(CLOSING)
    programs = [(sys.executable, tmp_path / "closing.py", role, back) for role in "ab"]
    both = pair(("o_i: u, s: back", "o_i: back, s: u"), "a.u: b.u, b.back: a.back", programs)
    rest = "titin: {fields: {b.u: {mode: pull}}, buffer: {default: {messages: 2}}}\n"
    done = run(tmp_path, both + rest)
    assert done.returncode == 1, done.stdout
    assert told in " ".join(done.stdout.split()), done.stdout


#: Rank 1 of the sender takes in no connection until a signal has interrupted its withdrawal: rank 0 makes a connection
#: to rank 1 for the order to give up the versions. The receiver asks for no version before, since the ranks would be
#: connected then.
BROKEN_OFF = """
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np
import titin


class Alarm(Exception):
    pass


def ring(*_):
    raise Alarm


# The second is a folder, which is made without a descriptor.
withdrawn, starved = (Path(sys.argv[2]) / name for name in ("withdrawn", "starved"))
if sys.argv[1] == "b":
    with titin.Instance(s=["u"]) as instance:
        instance.reuse()
        u = instance.field("u", (6,), float)
        while not withdrawn.exists():
            time.sleep(0.01)
        try:
            u.receive(np.zeros(6))
        except titin.PortClosed:
            pass
        else:
            raise AssertionError("all versions were given up")
else:
    from mpi4py import MPI

    with titin.Instance(o_i=["u"], comm=MPI.COMM_WORLD) as instance:
        instance.reuse()
        u = instance.field("u", (6,), float, owned=titin.Grid((2,)))
        u.send(np.zeros(3), timestamp=0.0)
        if instance.rank == 1:
            signal.signal(signal.SIGALRM, ring)
            limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
            starved.mkdir()
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            try:
                u.withdraw()
            except Alarm:
                pass
            else:
                raise AssertionError("rank 0 cannot reach this rank")
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))
        while not starved.exists():
            time.sleep(0.01)
        u.withdraw()
        withdrawn.touch()
"""


@pytest.mark.usefixtures("python")
def test_a_withdrawal_that_was_interrupted_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "withdraws.py").write_text(BROKEN_OFF)
    programs = [(sys.executable, tmp_path / "withdraws.py", side, tmp_path) for side in "ab"]
    model = pair(("o_i: u", "s: u"), "a.u: b.u", programs, (2, 1))
    done = run(tmp_path, f"{model}titin: {{fields: {{b.u: {{mode: pull, versions: 2}}}}}}\n")
    assert done.returncode == 0, done.stdout
