"""Tables of settings: grids, and with SciPy Latin hypercubes and Sobol sequences."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from titin.errors import UsageError
from titin.sampling import grid, latin_hypercube, results, sobol, to_parquet, write


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


RESULTS = (
    "row,k,name,flag,status,reason,mean,count,kind\n"
    "2,-0.0,a_1,true,done,,0.1,9007199254740993,warm\n"
    '0,1e-300,"b, c",false,done,,NaN,-2,cold\n'
    '1,0.30000000000000004,2.5 mm,true,done,,-inf,3,""\n'
)


def test_results_are_columns_in_the_order_of_the_settings(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(RESULTS + "3,1.0,d,true,do")
    table = results(path)
    assert list(table) == ["row", "k", "name", "flag", "status", "reason", "mean", "count", "kind"]
    assert table["k"].tobytes() == np.array([1e-300, 0.30000000000000004, -0.0]).tobytes()
    assert table["name"].tolist() == ["b, c", "2.5 mm", "a_1"]
    assert table["flag"].dtype == bool and table["flag"].tolist() == [False, True, True]
    np.testing.assert_array_equal(table["mean"], [np.nan, -np.inf, 0.1])
    assert table["count"].dtype == np.int64 and table["count"].tolist() == [-2, 3, 2**53 + 1]
    assert table["kind"].tolist() == ["cold", "", "warm"] and table["reason"].tolist() == [""] * 3


def test_results_of_failed_rows_are_nan(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("row,k,status,reason,count,kind\n1,1,failed,5,,\n0,18446744073709551615,done,,7,x\n")
    table = results(path)
    assert table["k"].tolist() == [2**64 - 1, 1] and table["reason"].tolist() == ["", "5"]
    np.testing.assert_array_equal(table["count"], [7.0, np.nan])
    assert table["kind"].tolist() == ["x", ""]
    path.write_text("row,k,status,reason\n")
    assert [len(column) for column in results(path).values()] == [0] * 4


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no column 'row'"),
        ("k,u\n1,2\n", "no column 'row'"),
        ("row,k,status,reason\n0,1.0,done\n", "line 2 has 3 cells, and there are 4 columns"),
        ("row,k,status,reason,k\n0,1.0,done,,2.0\n", "two columns have the name 'k'"),
        ("row,k,status,reason\nx,1.0,done,\n", "invalid literal"),
        ('row,k,status,reason\n0,1.0,failed,"oh\n', "unexpected end of data"),
    ],
)
def test_what_is_no_table_of_results_is_refused(text: str, error: str, tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=f"results.csv: .*{error}"):
        results(path)


def test_results_become_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="55 MB: pip install pyarrow")
    path = tmp_path / "results.csv"
    path.write_text(RESULTS + "3,1.0,d,true,failed,member m[0] has failed,,,\n")
    to_parquet(path, tmp_path / "results.parquet")
    table = parquet.read_table(tmp_path / "results.parquet")
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "row": "int64",
        "k": "double",
        "name": "string",
        "flag": "bool",
        "status": "string",
        "reason": "string",
        "mean": "double",
        "count": "double",
        "kind": "string",
    }
    assert table["kind"].to_pylist() == ["cold", "", "warm", None] and table["count"].to_pylist()[3] is None
    assert table["mean"].null_count == 1 and table["reason"].to_pylist()[3] == "member m[0] has failed"
    assert table["k"].to_numpy().tobytes() == results(path)["k"].tobytes()


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install titin\[parquet\]"):
        to_parquet(tmp_path / "results.csv", tmp_path / "results.parquet")


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
