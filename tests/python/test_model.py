"""Descriptions that are built in Python."""

from __future__ import annotations

import subprocess

import pytest
import yaml
from titin.model import Model, read_edges

from .conftest import TITIN


def check(model, folder):
    """What `titin check` says; the file as YAML."""
    path = folder / "model.ymmsl"
    model.write(path)
    done = subprocess.run([TITIN, "check", "--by-hand", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return yaml.safe_load(path.read_text())["models"][model.name]


def test_a_ring_is_closed(tmp_path):
    model = Model("heat")
    cells = model.ring("cell", 4)
    written = check(model, tmp_path)
    assert [cell.name for cell in cells] == ["cell_0", "cell_1", "cell_2", "cell_3"]
    assert len(written["conduits"]) == 8
    assert written["conduits"]["cell_3.to_right"] == "cell_0.from_left"
    assert written["conduits"]["cell_0.to_left"] == "cell_3.from_right"


def test_a_grid_has_borders(tmp_path):
    model = Model("plane")
    cells = model.grid("cell", (2, 3))
    written = check(model, tmp_path)
    assert len(cells) == 6
    assert len(written["conduits"]) == 2 * (3 + 4)
    assert sorted(written["components"]["cell_0_0"]["ports"]["o_i"]) == ["to_east", "to_north"]


@pytest.mark.parametrize(
    "text", ["a,b,2.5\nb,c,1\n", "source target weight\na b 2.5\nb c 1\n", "# x\na\tb\t2.5\nb\tc\t1"]
)
def test_a_network_from_a_file(tmp_path, text):
    (tmp_path / "edges.txt").write_text(text)
    assert read_edges(tmp_path / "edges.txt") == [("a", "b", {"weight": 2.5}), ("b", "c", {"weight": 1})]
    model = Model("net")
    cells = model.network("node", tmp_path / "edges.txt")
    written = check(model, tmp_path)
    assert list(cells) == ["a", "b", "c"]
    assert written["conduits"]["node_b.to_c"] == "node_c.from_b"
    assert model.settings["node_b.to_a_weight"] == 2.5


def test_two_names_alike_are_refused():
    with pytest.raises(ValueError, match="would both be called a_b"):
        Model("net").network("node", [("a b", "a-b")])
