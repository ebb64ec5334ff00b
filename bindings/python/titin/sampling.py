"""Tables of settings for ``titin.sampler``: grids, Latin hypercubes and Sobol sequences.

A table has a column for each setting and a row for each run of a member::

    from titin.sampling import latin_hypercube, write

    write("table.csv", latin_hypercube(1000, {"k": (0.8, 1.2), "depth": ("1 m", "5 m")}, seed=7))

A range is a pair of numbers, or of numbers with the same unit, which then stands in each cell. Latin hypercubes and
Sobol sequences are those of SciPy: ``pip install titin[sampling]``.
"""

from __future__ import annotations

import csv
import itertools
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

from titin.errors import UsageError

Cell: TypeAlias = float | int | bool | str
Range: TypeAlias = tuple[float | str, float | str]
Table: TypeAlias = dict[str, list[Cell]]

_OTHER_FORMATS = (".npy", ".jsonl", ".ndjson", ".json")

__all__ = ["grid", "latin_hypercube", "sobol", "write"]


def grid(settings: Mapping[str, Iterable[Cell]]) -> Table:
    """All combinations of the values of each setting; the last setting changes fastest."""
    values = [_values(name, given) for name, given in settings.items()]
    rows = list(itertools.product(*values))
    return {name: [row[number] for row in rows] for number, name in enumerate(settings)}


def latin_hypercube(rows: int, ranges: Mapping[str, Range], *, seed: int | None = None) -> Table:
    """A Latin hypercube: in each setting, one value in each of as many equal parts of the range as there are rows."""
    return _scaled(_qmc().LatinHypercube(d=len(ranges), rng=seed).random(_count(rows)), ranges)


def sobol(rows: int, ranges: Mapping[str, Range], *, seed: int | None = None) -> Table:
    """A scrambled Sobol sequence. Its balance needs a number of rows that is a power of two."""
    if _count(rows) & (rows - 1):
        power = 1 << (rows.bit_length() - 1)
        raise UsageError(f"a Sobol sequence of {rows} rows is not balanced: ask for {power} or {2 * power}")
    return _scaled(_qmc().Sobol(d=len(ranges), rng=seed).random_base2(rows.bit_length() - 1), ranges)


def write(path: str | os.PathLike[str], table: Mapping[str, Sequence[Cell]]) -> None:
    """Writes a table as CSV: a map from the name of a setting to its column, which a DataFrame of pandas is too."""
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
