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
from typing import Any, TypeAlias

from titin.errors import UsageError

Cell: TypeAlias = float | int | bool | str
Range: TypeAlias = tuple[float | str, float | str]
Table: TypeAlias = dict[str, list[Cell]]

__all__ = ["grid", "latin_hypercube", "sobol", "write"]


def grid(settings: Mapping[str, Iterable[Cell]]) -> Table:
    """All combinations of the values of each setting; the last setting changes fastest.

    Raises :class:`titin.UsageError` for a setting without a value.
    """
    values = [list(given) for given in settings.values()]
    if empty := [name for name, given in zip(settings, values, strict=True) if not given]:
        raise UsageError(f"setting '{empty[0]}' has no value: give a list of at least one")
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

    Raises :class:`titin.UsageError` for a table without a column, or with columns of different lengths.
    """
    lengths = {name: len(column) for name, column in table.items()}
    if not lengths:
        raise UsageError("a table has a column for each setting; there is none")
    if len(set(lengths.values())) > 1:
        raise UsageError(f"the columns of a table have as many rows as each other; found {lengths}")
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(map(_texts, zip(*table.values(), strict=True)))


def _texts(row: Iterable[Cell]) -> list[str]:
    return [str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in row]


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
    for number, (name, (low, high)) in enumerate(ranges.items()):
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
