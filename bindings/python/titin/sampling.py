"""Tables of settings for ``titin.sampler``: grids, Latin hypercubes and Sobol sequences; and its tables of results.

A table has a column for each setting and a row for each run of a member::

    from titin.sampling import latin_hypercube, write

    write("table.csv", latin_hypercube(1000, {"k": (0.8, 1.2), "depth": ("1 m", "5 m")}, seed=7))

A range is a pair of numbers, or of numbers with the same unit, which then stands in each cell. Latin hypercubes and
Sobol sequences are those of SciPy: ``pip install titin[sampling]``.

``results`` reads what the sampler has written; ``to_parquet`` converts it: ``pip install titin[parquet]``.
"""

from __future__ import annotations

import csv
import itertools
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from titin.errors import UsageError

Cell: TypeAlias = float | int | bool | str
Range: TypeAlias = tuple[float | str, float | str]
Table: TypeAlias = dict[str, list[Cell]]

__all__ = ["grid", "latin_hypercube", "results", "sobol", "to_parquet", "write"]

_OTHER_FORMATS = (".npy", ".jsonl", ".ndjson", ".json")

#: The columns that a table of results has beside those of settings and results.
_OWN = ("row", "status", "reason")


def grid(settings: Mapping[str, Iterable[Cell]]) -> Table:
    """All combinations of the values of each setting; the last setting changes fastest.

    Raises :class:`titin.UsageError` for a setting whose values are no list of at least one.
    """
    values = [_values(name, given) for name, given in settings.items()]
    rows = list(itertools.product(*values))
    return {name: [row[number] for row in rows] for number, name in enumerate(settings)}


def latin_hypercube(rows: int, ranges: Mapping[str, Range], *, seed: int | None = None) -> Table:
    """A Latin hypercube: in each setting, one value in each of as many equal parts of the range as there are rows.

    The same ``seed`` gives the same table. Raises :class:`titin.UsageError` for less than one row, and for a range
    whose ends are no numbers, have two units, or are not in order; ImportError without SciPy.
    """
    return _scaled(_qmc().LatinHypercube(d=len(ranges), rng=seed).random(_count(rows)), ranges)


def sobol(rows: int, ranges: Mapping[str, Range], *, seed: int | None = None) -> Table:
    """A scrambled Sobol sequence. Its balance needs a number of rows that is a power of two.

    Raises as :func:`latin_hypercube`, and :class:`titin.UsageError` for another number of rows.
    """
    if _count(rows) & (rows - 1):
        power = 1 << (rows.bit_length() - 1)
        raise UsageError(f"a Sobol sequence of {rows} rows is not balanced: ask for {power} or {2 * power}")
    return _scaled(_qmc().Sobol(d=len(ranges), rng=seed).random_base2(rows.bit_length() - 1), ranges)


def write(path: str | os.PathLike[str], table: Mapping[str, Sequence[Cell]]) -> None:
    """Writes a table as CSV, for the setting ``table`` of a sampler.

    A table is a map from the name of a setting to its column, which a DataFrame of pandas is too. Raises
    :class:`titin.UsageError` for another ending than ``.csv`` that the sampler knows, for what is no map, for a table
    without a column, and for columns of different lengths.
    """
    if (ending := os.path.splitext(path)[1].lower()) in _OTHER_FORMATS:
        raise UsageError(f"tables are written as CSV, and titin.sampler reads '{ending}' as another format: use '.csv'")
    if not hasattr(table, "items"):
        raise UsageError(f"a table is a map from a setting to its column, as {{'k': [0.8, 1.2]}}; found {table!r:.60}")
    lengths = {name: len(column) for name, column in table.items()}
    if not lengths:
        raise UsageError("a table has a column for each setting; there is none")
    if len(set(lengths.values())) > 1:
        raise UsageError(f"the columns of a table have as many rows as each other; found {lengths}")
    columns = [[_text(name, cell) for cell in column] for name, column in table.items()]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*columns, strict=True))


def results(path: str | os.PathLike[str]) -> dict[str, np.ndarray[Any, Any]]:
    """The columns of a table of results, each by its name, in the order of the table of settings.

    A column has the first of these types that all of its cells have: whole numbers, real numbers, truth values, texts
    (``dtype=object``). A result of a failed row is NaN, or an empty text. A line that is being written is left out.
    """
    with open(path, encoding="utf-8", newline="") as file:
        *lines, _ = file.read().split("\n")
    try:
        names, *rows = csv.reader(lines, strict=True) if lines else [[]]
        wrong = [number for number, row in enumerate(rows, 2) if len(row) != len(names)]
        if missing := [name for name in _OWN if name not in names]:
            raise ValueError(f"there is no column '{missing[0]}': is it a table of results of titin.sampler?")
        if wrong:
            raise ValueError(f"line {wrong[0]} has {len(rows[wrong[0] - 2])} cells, and there are {len(names)} columns")
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two columns have the name '{twice[0]}': give the result another than the setting")
        rows.sort(key=lambda row: int(row[0]))
    except (csv.Error, ValueError) as error:
        raise UsageError(f"{os.fspath(path)}: {error}") from None
    return {name: _column(name, [row[place] for row in rows]) for place, name in enumerate(names)}


def to_parquet(table: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Converts a table of results to Parquet. Results of failed rows are null."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as missing:
        raise ImportError("Parquet needs pyarrow: pip install titin[parquet]") from missing
    columns = results(table)
    names = list(columns)
    failed = columns["status"] != "done"
    of_results = names[names.index("reason") + 1 :]
    arrays = {
        name: pyarrow.array(cells, mask=failed if name in of_results else None) for name, cells in columns.items()
    }
    parquet.write_table(pyarrow.table(arrays), path)


def _column(name: str, cells: list[str]) -> np.ndarray[Any, Any]:
    texts = np.array(cells, dtype=object)
    if name in ("status", "reason") or any("_" in cell for cell in cells):  # Python reads 1_000 as a number
        return texts
    for dtype in (np.int64, np.uint64):
        try:
            return np.array([int(cell) for cell in cells], dtype)
        except (ValueError, OverflowError):
            pass
    try:
        return np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        return texts == "true" if set(cells) <= {"true", "false"} else texts


def _values(name: str, given: Iterable[Cell]) -> list[Cell]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"the values of setting '{name}' are {given!r}: give a list, as [{given!r}]")
    if not (values := list(given)):
        raise UsageError(f"setting '{name}' has no value: give a list of at least one")
    return values


def _text(name: str, cell: Any) -> str:
    """A cell as titin.sampler reads it; Booleans of NumPy are no `bool`."""
    if isinstance(cell, bool) or type(cell).__name__ in ("bool", "bool_"):
        return str(cell).lower()
    if isinstance(cell, (str, Real)):
        return str(cell)
    raise UsageError(f"column '{name}' has the cell {cell!r}: give a number, true or false, or a text")


def _count(rows: int) -> int:
    if rows < 1:
        raise UsageError(f"a table of {rows} rows: ask for at least one")
    return rows


def _qmc() -> Any:
    try:
        from scipy.stats import qmc
    except ImportError as missing:
        raise ImportError("this table needs SciPy: pip install titin[sampling]") from missing
    return qmc


def _scaled(sample: Any, ranges: Mapping[str, Range]) -> Table:
    table: Table = {}
    for number, (name, ends) in enumerate(ranges.items()):
        if not isinstance(ends, (tuple, list)) or len(ends) != 2:
            raise UsageError(f"the range of '{name}' is {ends!r}: give its two ends, as (0.5, 1.5)")
        low, high = ends
        (least, unit), (most, other) = _quantity(name, low), _quantity(name, high)
        if unit != other:
            raise UsageError(f"the range of '{name}' is from {low} to {high}: write both ends in one unit")
        if not least < most:
            raise UsageError(f"the range of '{name}' is from {low} to {high}: the lower end comes first")
        values = (least + (most - least) * float(place) for place in sample[:, number])
        table[name] = [f"{value!r} {unit}" for value in values] if unit else list(values)
    return table


def _quantity(name: str, given: float | str) -> tuple[float, str]:
    """A number, and its unit if it has one."""
    text, _, unit = str(given).strip().partition(" ")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(
            f"an end of the range of '{name}' is {given!r}: give a number, or one with a unit, as '2.5 mm'"
        )
    return number, unit.strip()
