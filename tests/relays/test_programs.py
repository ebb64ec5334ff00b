"""Programs of every language, of many ranks, and at three sites: they couple over relays as within a site."""

from __future__ import annotations

import importlib
import itertools
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ..conftest import Copy, needs
from ..sites.conftest import chain, printed
from .conftest import Relay, Sites, row_without_transit, wait_until

LANGUAGES = ("python", "c", "cpp", "fortran")
FOLDER = "reaction-diffusion"


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A copy of the examples, with the programs of one of them built."""
    copy = Copy.of("examples", tmp_path_factory)
    copy.call("make", folder=FOLDER)
    return copy


@pytest.fixture(scope="module")
def plot(examples: Copy) -> Iterator[ModuleType]:
    """The example's own code, which knows the solution computed directly."""
    sys.path.insert(0, str(examples.folder / FOLDER))
    yield importlib.import_module("plot")
    sys.path.pop(0)
    sys.modules.pop("plot", None)


@pytest.mark.parametrize(("macro", "micro"), list(zip(LANGUAGES, (*LANGUAGES[1:], LANGUAGES[0]), strict=True)))
def test_every_language_couples_with_another_site(
    sites: Sites, examples: Copy, plot: ModuleType, macro: str, micro: str
) -> None:
    at_sites = sites.folder / "sites.ymmsl"
    at_sites.write_text(
        f"""ymmsl_version: v0.2
titin:
  sites: {{south: {{relay: "127.0.0.1:{sites.south.local}"}}}}
  hosts:
    localhost: {{components: [macro]}}
    far: {{site: south, start: [env], components: [micro]}}
"""
    )
    run = sites.folder / "run"
    files = ["model.ymmsl", f"{macro}/macro.ymmsl", f"{micro}/micro.ymmsl", at_sites]
    examples.call("titin", "run", *files, "--relay", sites.north.folder, "--run-dir", run, folder=FOLDER)
    np.testing.assert_array_equal(plot.coupled(run), plot.direct()[-1])


#: Ranks at one site send a field, whose owners are spread in blocks or irregularly, to ranks at another site and back.
FIELD = """\
import sys
import time

import numpy as np
import titin
from mpi4py import MPI

leads, way, steps, pause = sys.argv[1] == "a", sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
comm = MPI.COMM_WORLD
ports = ("there", "back") if leads else ("back", "there")
size = 50_000
with titin.Instance(o_i=[ports[0]], s=[ports[1]], comm=comm) as instance:
    instance.reuse()
    own = np.arange(comm.rank, size, comm.size) if way == "irregular" else None
    owned = titin.Indices(own) if way == "irregular" else titin.Grid((comm.size,))
    out, into = (instance.field(name, (size,), float, owned=owned) for name in ports)
    if own is None:
        own = np.asarray(into.owned[0])
    for step in range(steps):
        time.sleep(pause)
        if leads:
            out.send(own * 1.5 + step, timestamp=float(step))
            got = np.zeros(len(own))
            into.receive(got)
            assert (got == -(own * 1.5 + step)).all(), (comm.rank, step)
        else:
            got = np.zeros(len(own))
            into.receive(got)
            out.send(-got, timestamp=float(step))
print("the same")
"""


def write_fields(sites: Sites, way: str, steps: int, pause: float = 0) -> None:
    """Writes the model of two ranks and three ranks that exchange a field in each step, with a pause between."""
    pytest.importorskip("mpi4py")
    needs("mpirun.openmpi")
    program = sites.folder / "field.py"
    program.write_text(FIELD)
    (sites.folder / "model.ymmsl").write_text(
        f"""ymmsl_version: v0.2
models:
  fields:
    components:
      a: {{description: here, ports: {{o_i: there, s: back}}, implementation: a}}
      b: {{description: there, ports: {{o_i: back, s: there}}, implementation: b}}
    conduits: {{a.there: b.there, b.back: a.back}}
programs:
  a: {{executable: {sys.executable}, args: [{program}, a, {way}, "{steps}", "{pause}"], execution_model: openmpi}}
  b: {{executable: {sys.executable}, args: [{program}, b, {way}, "{steps}", "{pause}"], execution_model: openmpi}}
resources:
  fields.a: {{mpi_processes: 2}}
  fields.b: {{mpi_processes: 3}}
titin:
  sites: {{south: {{relay: "127.0.0.1:{sites.south.local}"}}}}
  hosts:
    localhost: {{components: [a]}}
    far: {{site: south, start: [env], components: [b]}}
"""
    )


def check_fields(sites: Sites) -> None:
    """Fails unless each rank has received what was sent."""
    for name, ranks in (("a", 2), ("b", 3)):
        # Ranks that print at once share lines.
        printed = (sites.folder / f"run/instances/{name}/stdout.txt").read_text().replace("\n", "")
        assert printed == "the same" * ranks


@pytest.mark.parametrize("way", ["blocks", "irregular"])
def test_ranks_exchange_fields_with_ranks_at_another_site(sites: Sites, way: str) -> None:
    write_fields(sites, way, steps=5)
    code, out = sites.run()
    assert code == 0, out
    check_fields(sites)


def test_no_cut_of_the_line_changes_a_field(sites: Sites) -> None:
    write_fields(sites, "irregular", steps=40, pause=0.03)
    process = sites.begin()
    wait_until(lambda: sites.north.peer("south")["circuits"] >= 2, "there are no circuits")
    sites.line.disturb(random.Random(1), process)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    check_fields(sites)
    assert sites.line.connections > 10


def three_sites(folder: Path, south: Relay, east: Relay, more: str = "") -> None:
    """Writes a model in which a, b and c pass a number on, each at another site."""
    chain(
        folder,
        "abc",
        f"""
        sites: {{south: {{relay: "127.0.0.1:{south.local}"}}, east: {{relay: "127.0.0.1:{east.local}"}}}}
        hosts:
          localhost: {{components: [b]}}
          s: {{site: south, start: [env], components: [a]}}
          e: {{site: east, start: [env], components: [c]}}
        {more}""",
    )


@pytest.mark.parametrize("shape", ["row", "row_that_dials_the_middle", "triangle"])
def test_three_sites_may_lie_in_a_row_or_in_a_triangle(
    tmp_path: Path, relays: Callable[..., Relay], shape: str
) -> None:
    has_ports = shape != "row_that_dials_the_middle"
    north, south, east = relays("north", open_port=has_ports), relays("south"), relays("east", open_port=has_ports)
    # In a row, south lies between north and east.
    for one, other in ((north, south), (south, east)):
        one.trust(other, "--transit", port=other.listen)
        other.trust(one, "--transit", port=one.listen)
    if shape == "triangle":
        north.trust(east, port=east.listen)
        east.trust(north)
    else:
        north.titin("trust", "east", "--via", "south")
        east.titin("trust", "north", "--via", "south")
    for relay in (north, south, east):
        relay.start()
    wait_until(
        lambda: all(peer["connected"] for relay in (north, south, east) for peer in relay.status["peers"]),
        "the relays do not connect",
    )
    three_sites(tmp_path, south, east)
    Copy(tmp_path).call("titin", "run", "model.ymmsl", "--relay", north.folder, "--run-dir", "run")
    assert [line.split()[-1] for line in printed(tmp_path, *"abc")] == ["0", "1", "2"]


def test_four_sites_may_lie_in_a_row(tmp_path: Path, relays: Callable[..., Relay]) -> None:
    names = ("north", "south", "east", "west")
    row = [relays(name, open_port=True) for name in names]
    for one, other in itertools.pairwise(row):
        one.trust(other, "--transit", port=other.listen)
        other.trust(one, "--transit", port=one.listen)
    for place, relay in enumerate(row):
        for far, name in enumerate(names):
            if abs(far - place) > 1:
                relay.titin("trust", name, "--via", names[place + (1 if far > place else -1)])
    for relay in row:
        relay.start()
    north, *others = row
    sites = ", ".join(f'{relay.site}: {{relay: "127.0.0.1:{relay.local}"}}' for relay in others)
    chain(
        tmp_path,
        "abcd",
        f"""
        sites: {{{sites}}}
        hosts:
          localhost: {{components: [a]}}
          s: {{site: south, start: [env], components: [c]}}
          e: {{site: east, start: [env], components: [d]}}
          w: {{site: west, start: [env], components: [b]}}""",
    )
    Copy(tmp_path).call("titin", "run", "model.ymmsl", "--relay", north.folder, "--run-dir", "run")
    assert [line.split()[-1] for line in printed(tmp_path, *"abcd")] == ["0", "1", "2", "3"]


def test_a_relay_that_is_not_to_pass_on_does_not(tmp_path: Path, relays: Callable[..., Relay]) -> None:
    north, south, east = row_without_transit(relays)
    three_sites(tmp_path, south, east, "register_timeout: 4 s")
    out = Copy(tmp_path).call("titin", "run", "model.ymmsl", "--relay", north.folder, "--run-dir", "run", status=1)
    assert "host e" in out, out
    waiting = " ".join(out.partition("Waiting:")[2].split())
    assert "the relay of the site south does not pass the run on to east: the site north is trusted" in waiting, out
    assert not east.status["runs"]


@pytest.mark.parametrize("how", ["not connected", "not trusted"])
def test_a_relay_in_the_middle_says_what_is_behind_it(tmp_path: Path, relays: Callable[..., Relay], how: str) -> None:
    north, south, east = relays("north"), relays("south"), relays("east")
    north.trust(south, "--transit", port=south.listen)
    south.trust(north, "--transit")
    north.titin("trust", "east", "--via", "south")
    if how == "not connected":
        south.trust(east, "--transit", port=east.listen)
    for relay in (north, south):
        relay.start()
    wait_until(lambda: north.peer("south")["connected"], "the relays do not connect")
    three_sites(tmp_path, south, east, "register_timeout: 12 s")
    out = Copy(tmp_path).call("titin", "run", "model.ymmsl", "--relay", north.folder, "--run-dir", "run", status=1)
    why = {
        "not connected": "the relay of the site south is not connected to that of east: the relay of the site east at",
        "not trusted": "the relay of the site south knows no way to the site east",
    }[how]
    waiting = " ".join(out.partition("Waiting:")[2].split())
    assert why in waiting, out
    assert re.search(rf"WARNING +manager +{why}", (tmp_path / "run/titin_manager.log").read_text())
