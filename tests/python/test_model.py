"""Descriptions built in Python: both titin and the ymmsl package accept them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import titin
import yaml
from titin.model import Model, read_edges

from ..conftest import TITIN

networkx = pytest.importorskip("networkx")
pytest.importorskip("ymmsl", reason="the oracle, a package for tests only: pip install ymmsl==0.18.0")

sys.path.append(str(Path(__file__).parents[1] / "model"))
from oracle import resolved, timelines, verdict  # noqa: E402


def check(model, folder, *, strict=True):
    """The file as YAML, after `titin check` and the ymmsl package have accepted the file."""
    path = folder / "model.ymmsl"
    model.write(path)
    # Strict mode is like the package: components that step together have to be named.
    command = [TITIN, "check", "--by-hand", *["--strict"] * strict, path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stdout + done.stderr
    assert verdict([path], folder, folder) is None
    return yaml.safe_load(path.read_text())


def test_a_ring_is_closed(tmp_path):
    model = Model("heat")
    cells = model.ring("cell", 4)
    written = check(model, tmp_path)["models"]["heat"]
    assert [cell.name for cell in cells] == ["cell_0", "cell_1", "cell_2", "cell_3"]
    assert len(written["conduits"]) == 8
    assert written["conduits"]["cell_3.to_right"] == "cell_0.from_left"
    assert written["conduits"]["cell_0.to_left"] == "cell_3.from_right"
    assert written["matching_timelines"] == {"cell_0": ["cell_1", "cell_2", "cell_3"]}


@pytest.mark.parametrize("count", [2, 3, 100])
@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize("closed", [True, False])
def test_rings_and_chains_of_any_length(tmp_path, count, both, closed):
    model = Model("heat")
    model.ring("cell", count, "cell", both=both, closed=closed)
    model.program("cell", "cell")
    written = check(model, tmp_path)["models"]["heat"]
    assert len(written["conduits"]) == (1 + both) * (count - (not closed))


def test_a_grid_has_borders(tmp_path):
    model = Model("plane")
    cells = model.grid("cell", (2, 3))
    written = check(model, tmp_path)["models"]["plane"]
    assert len(cells) == 6
    assert len(written["conduits"]) == 2 * (3 + 4)
    assert sorted(written["components"]["cell_0_0"]["ports"]["o_i"]) == ["to_east", "to_north"]


def test_a_grid_may_have_three_dimensions_and_no_borders(tmp_path):
    model = Model("torus")
    cells = model.grid("cell", (3, 3, 2), periodic=(True, True, False))
    written = check(model, tmp_path)["models"]["torus"]
    assert len(written["conduits"]) == 2 * (18 + 18 + 9)
    assert written["conduits"]["cell_2_1_0.to_east"] == "cell_0_1_0.from_west"
    assert len(cells[1, 1, 1].ports["s"]) == 5
    with pytest.raises(ValueError, match="4 dimensions"):
        model.grid("more", (2, 2, 2, 2))


@pytest.mark.parametrize(
    "text",
    ["a,b,2.5\nb,c,1\n", "source target weight\na b 2.5\nb c 1\n", "# x\na\tb\t2.5\nb\tc\t1", "a; b; 2.5\nb; c; 1"],
)
def test_a_network_from_an_edge_list(tmp_path, text):
    (tmp_path / "edges.txt").write_text(text)
    assert read_edges(tmp_path / "edges.txt") == [("a", "b", {"weight": 2.5}), ("b", "c", {"weight": 1})]
    model = Model("net")
    cells = model.network("node", tmp_path / "edges.txt")
    written = check(model, tmp_path)
    assert list(cells) == ["a", "b", "c"]
    assert written["models"]["net"]["conduits"]["node_b.to_c"] == "node_c.from_b"
    assert written["settings"]["node_b.to_a_weight"] == 2.5


def test_an_edge_list_with_columns(tmp_path):
    (tmp_path / "canals.csv").write_text('source,target,length,name\n1,2,3.5,"north, old"\n2,3,1e3,\n')
    edges = read_edges(tmp_path / "canals.csv")
    assert edges == [
        ("1", "2", {"length": 3.5, "name": "north, old"}),
        ("2", "3", {"length": 1000.0, "name": ""}),
    ]
    model = Model("net")
    model.network("node", tmp_path / "canals.csv", both=False)
    written = check(model, tmp_path)
    assert written["models"]["net"]["conduits"] == {"node_1.to_2": "node_2.from_1", "node_2.to_3": "node_3.from_2"}
    assert written["settings"]["node_1.to_2_name"] == "north, old"


@pytest.mark.parametrize("text", ["a,b,1,2", "a"])
def test_an_edge_list_that_does_not_fit_says_where(tmp_path, text):
    (tmp_path / "edges.txt").write_text(f"a,b\n{text}\n")
    with pytest.raises(ValueError, match=r"edges.txt: edge 2 has \d columns"):
        read_edges(tmp_path / "edges.txt")


GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="bed level" attr.type="double"/>
  <key id="d1" for="node" attr.name="gauge" attr.type="boolean"><default>false</default></key>
  <key id="d2" for="edge" attr.name="length" attr.type="int"/>
  <graph edgedefault="{kind}">
    <node id="lake 1"><data key="d0">-1.5</data></node>
    <node id="weir"><data key="d0">0.25</data><data key="d1">true</data></node>
    <node id="sea"/>
    <edge source="lake 1" target="weir"><data key="d2">120</data></edge>
    <edge source="weir" target="sea"><data key="d2">80</data></edge>
    {more}
  </graph>
</graphml>
"""


@pytest.mark.parametrize("kind", ["undirected", "directed"])
def test_a_network_from_graphml(tmp_path, kind):
    (tmp_path / "canals.graphml").write_text(GRAPHML.format(kind=kind, more=""))
    model = Model("canals")
    cells = model.network("at", tmp_path / "canals.graphml", "canal")
    model.program("canal", "canal")
    written = check(model, tmp_path)
    assert list(cells) == ["lake 1", "weir", "sea"]
    assert written["models"]["canals"]["conduits"] == {
        "at_lake_1.to_weir": "at_weir.from_lake_1",
        "at_weir.to_lake_1": "at_lake_1.from_weir",
        "at_weir.to_sea": "at_sea.from_weir",
        "at_sea.to_weir": "at_weir.from_sea",
    }
    assert written["settings"] == {
        "at_lake_1.bed_level": -1.5,
        "at_lake_1.gauge": False,
        "at_weir.bed_level": 0.25,
        "at_weir.gauge": True,
        "at_sea.gauge": False,
        "at_lake_1.to_weir_length": 120,
        "at_weir.to_lake_1_length": 120,
        "at_weir.to_sea_length": 80,
        "at_sea.to_weir_length": 80,
    }


def test_a_way_back_of_its_own(tmp_path):
    """The attributes of a directed graph's edge for the way back are used."""
    back = '<edge source="sea" target="weir"><data key="d2">90</data></edge>'
    (tmp_path / "canals.graphml").write_text(GRAPHML.format(kind="directed", more=back))
    model = Model("canals")
    model.network("at", tmp_path / "canals.graphml")
    written = check(model, tmp_path)
    assert (written["settings"]["at_weir.to_sea_length"], written["settings"]["at_sea.to_weir_length"]) == (80, 90)
    assert len(written["models"]["canals"]["conduits"]) == 4


def test_two_edges_between_the_same_nodes_are_refused(tmp_path):
    again = '<edge source="weir" target="sea"><data key="d2">90</data></edge>'
    (tmp_path / "canals.graphml").write_text(GRAPHML.format(kind="undirected", more=again))
    with pytest.raises(ValueError, match="two edges from 'weir' to 'sea'"):
        Model("canals").network("at", tmp_path / "canals.graphml")


def test_networks_of_networkx(tmp_path):
    graph = networkx.random_regular_graph(4, 30, seed=1)
    networkx.write_graphml(graph, tmp_path / "graph.graphml")
    networkx.write_gml(graph, tmp_path / "graph.gml")
    networkx.write_weighted_edgelist(graph, tmp_path / "graph.edges")
    sources = [graph, *(tmp_path / f"graph.{ending}" for ending in ("graphml", "gml", "edges"))]
    found = []
    for source in sources:
        model = Model("net")
        cells = model.network("node", source)
        conduits = check(model, tmp_path)["models"]["net"]["conduits"]
        assert len(cells) == 30
        found.append(conduits)
    assert found[0] == found[1] == found[2] == found[3]
    assert len(found[0]) == 120


def test_a_network_of_any_graph(tmp_path):
    """A graph needs two methods of networkx, and no others."""

    class Two:
        def nodes(self, data):
            return [("a", {"mine": 1}), ("b", {})]

        def edges(self, data):
            return [("a", "b", {"weight": 2})]

    model = Model("net")
    cells = model.network("node", Two())
    assert list(cells) == ["a", "b"]
    written = check(model, tmp_path)
    assert written["settings"] == {"node_a.mine": 1, "node_a.to_b_weight": 2, "node_b.to_a_weight": 2}


def test_a_graph_without_networkx_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ModuleNotFoundError, match=r"canals\.gml is read by networkx: pip install networkx"):
        Model("canals").network("at", tmp_path / "canals.gml")


def test_a_network_is_run(tmp_path):
    """Each node learns the largest number in the network, in as many steps as there are nodes."""
    model = Model("net")
    nodes = {name: {"mine": number} for number, name in enumerate("abcde")}
    graph = networkx.Graph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("d", "e")])
    networkx.set_node_attributes(graph, nodes)
    cells = model.network("node", graph, "node")

    def node(instance):
        while instance.reuse():
            largest = instance.setting("mine", int)
            for step in range(len(nodes)):
                for port in instance.ports.values():
                    if port.operator == "o_i":
                        instance.send(port, largest, timestamp=step)
                for port in instance.ports.values():
                    if port.operator == "s":
                        largest = max(largest, instance.receive(port).data)
        return largest

    run = titin.run(model, {cell.name: node for cell in cells.values()}, run_dir=tmp_path / "run")
    assert run.returned == {f"node_{name}": 4 for name in nodes}


def test_two_names_alike_are_refused():
    with pytest.raises(ValueError, match="would both be called a_b"):
        Model("net").network("node", [("a b", "a-b")])


def micro() -> Model:
    """A model that implements a component: two components that step together, and one that follows."""
    inner = Model("micro", description="the small scale")
    inner.port("f_init", "start")
    inner.port("o_f", "end")
    first = inner.component("first", "solver", f_init="state", o_f="final")
    second = inner.component("second", "solver", f_init="state", o_f="final")
    inner.connect(first, "out", second, "into")
    inner.connect(second, "back", first, "returned")
    inner.conduit("start", "first.state")
    inner.conduit("start", "second.state")
    inner.component("joined", "solver", f_init="one other", o_f="final")
    inner.conduit("first.final", "joined.one")
    inner.conduit("second.final", "joined.other")
    inner.conduit("joined.final", "end")
    inner.program("solver", "solver")
    inner.settings = {"dt": 0.1, "first.dt": 0.2}
    inner.resources = {"first": {"threads": 2}}
    return inner


def test_models_in_models(tmp_path):
    model = Model("outer")
    model.component("macro", "solver", o_i="out", s="in")
    block = model.component("block", micro(), description="what happens inside", multiplicity=3)
    assert block.ports == {"f_init": ["start"], "o_f": ["end"]}
    model.conduit("macro.out", "block.start")
    model.conduit("block.end", "macro.in")
    model.settings = {"dt": 1.0, "block.first.dt": 0.3}
    written = check(model, tmp_path)
    assert list(written["models"]) == ["outer", "micro"]
    assert written["models"]["micro"]["ports"] == {"f_init": ["start"], "o_f": ["end"]}
    assert written["models"]["micro"]["conduits"]["start"] == ["first.state", "second.state"]
    assert written["models"]["outer"]["components"]["block"]["implementation"] == "micro"
    assert written["settings"] == {"dt": 1.0, "block.dt": 0.1, "block.first.dt": 0.3}
    assert written["resources"] == {"outer.block.first": {"threads": 2}}
    accepted = resolved([tmp_path / "model.ymmsl"], tmp_path, tmp_path)
    assert str(accepted.root_model().name) == "outer"


def test_a_model_twice_in_a_model(tmp_path):
    inner = micro()
    model = Model("outer")
    model.component("macro", "solver", o_i="out", s="in")
    for name in ("before", "after"):
        model.component(name, inner)
    model.conduit("macro.out", "before.start")
    model.conduit("before.end", "after.start")
    model.conduit("after.end", "macro.in")
    written = check(model, tmp_path)
    assert written["settings"]["after.first.dt"] == written["settings"]["before.first.dt"] == 0.2
    assert len(written["models"]) == 2


def test_models_that_do_not_go_together_are_refused():
    model = Model("outer")
    inner = micro()
    model.component("block", inner)
    model.program("solver", "another")
    with pytest.raises(ValueError, match="different programs called solver"):
        model.text()
    model.programs.clear()
    inner.titin = {"grace": "1 s"}
    with pytest.raises(ValueError, match="its section titin belongs there"):
        model.text()
    inner.titin = {}
    model.component("other", micro())
    with pytest.raises(ValueError, match="two models are called micro"):
        model.text()
    looped = Model("looped")
    looped.component("itself", looped)
    with pytest.raises(ValueError, match="contains itself"):
        looped.text()


def test_filters(tmp_path):
    model = Model("filtered")
    model.component("slow", "solver", o_i="out", s="in")
    model.component("before", "solver", o_f="mesh")
    model.component("fast", "solver", f_init="state mesh", o_i="probe", o_f="final")
    model.component("watch", "solver", f_init="last_one")
    model.conduit("slow.out", "fast.state")
    model.conduit("fast.final", "slow.in")
    model.conduit("before.mesh", "fast.mesh", "repeat")
    model.conduit("fast.probe", "watch.last_one", "last", "last")
    model.program("solver", "solver")
    written = check(model, tmp_path)
    assert written["models"]["filtered"]["conduits"]["before.mesh"] == "repeat fast.mesh"
    path = [tmp_path / "model.ymmsl"], tmp_path, tmp_path
    assert timelines(*path)["fast"] == "slow:fast"


def test_cells_that_a_macro_calls_step_together(tmp_path):
    """Their timeline is inside that of the macro."""
    model = Model("called")
    model.component("macro", "solver", o_i="start", s="ends[]")
    cells = model.ring("cell", 3, "solver", f_init="start", o_f="end")
    for number, cell in enumerate(cells):
        model.conduit("macro.start", f"{cell.name}.start")
        model.conduit(f"{cell.name}.end", f"{model.components['macro'].port('s', f'end_{number}')}")
    model.components["macro"].ports["s"].remove("ends[]")
    model.program("solver", "solver")
    written = check(model, tmp_path)
    assert written["models"]["called"]["matching_timelines"] == {"macro:cell_0": ["macro:cell_1", "macro:cell_2"]}


def test_cells_behind_the_last_message_step_together(tmp_path):
    """Their timeline is beside that of the component before, not inside."""
    model = Model("behind")
    model.component("before", "solver", o_i="out")
    cells = model.ring("cell", 3, "solver", f_init="start")
    for cell in cells:
        model.conduit("before.out", f"{cell.name}.start", "last")
    model.program("solver", "solver")
    written = check(model, tmp_path)
    assert written["models"]["behind"]["matching_timelines"] == {"cell_0": ["cell_1", "cell_2"]}


def test_multiplicity_settings_programs_and_resources(tmp_path):
    model = Model("many", description="an ensemble")
    model.component("driver", "driver", o_i="out", s="in")
    model.component("member", "member", f_init="in", o_f="out", multiplicity=(2, np.int64(3)), optional=False)
    model.conduit("driver.out", "member.in")
    model.conduit("member.out", "driver.in")
    model.program("driver", "bin/driver", ["--level", 3], env={"OMP_PROC_BIND": "true"}, base_env="clean")
    model.program("member", script="#!/bin/sh\nexec member\n", description="one of many")
    model.settings = {
        "dt": np.float32(0.5),
        "steps": np.int64(5),
        "name": "10 ms: a",
        "on": True,
        "sizes": [1, 2, 3],
        "weights": np.array([0.5, 1.5]).tolist(),
        "table": [[1.0, 2.0], [3.0, 4.0]],
        "member[1][2].dt": 0.25,
        "yes": "no",
        "version": "1.0",
    }
    model.resources = {"member": {"threads": 2}}
    model.titin = {"scales": {"driver": {"dt": "1 h"}}, "grace": "2 s"}
    path = tmp_path / "model.ymmsl"
    model.write(path)
    # The package does not know titin's own section.
    del model.titin["scales"], model.titin["grace"]
    written = check(model, tmp_path)
    assert written["models"]["many"]["components"]["member"]["multiplicity"] == [2, 3]
    assert written["settings"] == {**model.settings, "dt": 0.5, "steps": 5}
    assert written["programs"]["driver"]["args"] == ["--level", "3"]
    assert written["resources"] == {"many.member": {"threads": 2}}
    accepted = resolved([path], tmp_path, tmp_path)
    assert accepted.settings["name"] == "10 ms: a"
    assert accepted.settings["yes"] == "no"


def test_what_a_description_cannot_hold_is_refused():
    model = Model("odd")
    model.settings = {"thing": object()}
    with pytest.raises(yaml.YAMLError, match="cannot hold <object"):
        model.text()


def test_ports_that_only_the_program_lists(tmp_path):
    model = Model("listed")
    model.component("macro", "solver")
    model.program("solver", "solver", ports={"o_i": ["out"], "o_f": ["last"]})
    written = check(model, tmp_path)
    assert written["models"]["listed"]["components"]["macro"]["ports"] == {"o_i": ["out"], "o_f": ["last"]}


def test_ports_that_nothing_lists():
    """Components whose ports appear in conduits have no key `ports`; a component without conduits has the key."""
    model = Model("open")
    for name in ("macro", "micro", "alone"):
        model.component(name, "elsewhere")
    model.conduit("macro.out", "micro.in")
    components = yaml.safe_load(model.text())["models"]["open"]["components"]
    assert {name: "ports" in entry for name, entry in components.items()} == {
        "macro": False,
        "micro": False,
        "alone": True,
    }


def test_a_description_on_standard_input(tmp_path):
    model = Model("heat")
    model.ring("cell", 3, "cell")
    model.program("cell", "bin/cell")
    command = [TITIN, "check", "-"]
    done = subprocess.run(command, input=model.text(), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(command, input="ymmsl_version: v0.3", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "-:1" in done.stdout + done.stderr
