"""Tables of settings: grids, and with SciPy Latin hypercubes and Sobol sequences."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from titin.errors import UsageError
from titin.sampling import grid, latin_hypercube, sobol, write


def test_a_grid_has_all_combinations(tmp_path: Path) -> None:
    table = grid({"k": [0.5, 1.0], "name": ["a, b", "c"], "flag": [True]})
    write(tmp_path / "table.csv", table)
    assert (tmp_path / "table.csv").read_text() == (
        'k,name,flag\n0.5,"a, b",true\n0.5,c,true\n1.0,"a, b",true\n1.0,c,true\n'
    )


def test_a_latin_hypercube_has_a_value_in_each_part_of_each_range(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    table = latin_hypercube(16, {"k": (1.0, 3.0), "depth": ("1 mm", "9 mm")}, seed=3)
    assert latin_hypercube(16, {"k": (1.0, 3.0), "depth": ("1 mm", "9 mm")}, seed=3) == table
    assert sorted(int((value - 1.0) * 8) for value in table["k"]) == list(range(16))
    assert all(value.endswith(" mm") for value in table["depth"])
    assert sorted(int((float(value.split()[0]) - 1.0) * 2) for value in table["depth"]) == list(range(16))
    write(tmp_path / "table.csv", table)
    with (tmp_path / "table.csv").open() as file:
        assert [float(row["k"]) for row in csv.DictReader(file)] == table["k"]


def test_a_sobol_sequence_is_balanced() -> None:
    pytest.importorskip("scipy")
    table = sobol(8, {"a": (0.0, 1.0), "b": (-1.0, 1.0)}, seed=1)
    assert sorted(int(value * 8) for value in table["a"]) == list(range(8))
    assert sum(value < 0 for value in table["b"]) == 4
    with pytest.raises(UsageError, match="ask for 8 or 16"):
        sobol(10, {"a": (0.0, 1.0)})


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        (("1 m", "5 mm"), "in one unit"),
        ((3.0, 1.0), "the lower end comes first"),
        (("deep", 1.0), "'deep'"),
        ((float("nan"), 1.0), "nan"),
        ((1.0, 2.0, 3.0), r"\(1.0, 2.0, 3.0\): give its two ends"),
        (4.0, "is 4.0: give its two ends"),
    ],
)
def test_wrong_ranges_are_named(ends: Any, words: str) -> None:
    pytest.importorskip("scipy")
    with pytest.raises(UsageError, match=words):
        latin_hypercube(4, {"k": ends})


def test_wrong_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="as many rows"):
        write(tmp_path / "table.csv", {"a": [1], "b": [1, 2]})
    with pytest.raises(UsageError, match="there is none"):
        write(tmp_path / "table.csv", {})
    with pytest.raises(UsageError, match="'b' has no value"):
        grid({"a": [1], "b": []})
    with pytest.raises(UsageError, match="map from a setting to its column"):
        write(tmp_path / "table.csv", [{"a": 1}])
    with pytest.raises(UsageError, match="column 'b' has the cell None"):
        write(tmp_path / "table.csv", {"a": [1], "b": [None]})
    assert not (tmp_path / "table.csv").exists()


@pytest.mark.parametrize("values", ["fast", 2.5])
def test_a_value_alone_is_no_list_of_values(values: Any) -> None:
    with pytest.raises(UsageError, match=rf"'mode' are {values!r}: give a list, as \[{values!r}\]"):
        grid({"mode": values})


@pytest.mark.parametrize("name", ["table.npy", "table.JSONL", "table.json", "table.ndjson"])
def test_csv_gets_no_name_of_another_format(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"as another format: use '\.csv'"):
        write(tmp_path / name, {"k": [1.0]})
    assert not (tmp_path / name).exists()


def test_cells_of_numpy_are_those_of_python(tmp_path: Path) -> None:
    write(tmp_path / "table.csv", {"k": np.array([0.1, 2.0]), "n": np.arange(2), "on": np.array([True, False])})
    assert (tmp_path / "table.csv").read_text() == "k,n,on\n0.1,0,true\n2.0,1,false\n"
