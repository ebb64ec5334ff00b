"""Settings in all units that titin knows, as a program reads them, against Pint.

``units.csv`` has the names of each unit, whether it takes prefixes, its SI unit, Pint's name for it, and the prefixes.
A test of ``crates/model/src/quantity.rs`` holds it to the tables that are read at run time.
"""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import titin

from .conftest import pair
from .test_instance import alone, idle

pint = pytest.importorskip("pint", reason="the oracle, a package for tests only: make setup installs it")

NUMBER = 3.7
# Products of rounded factors are accurate to this.
NEAR = {"rel": 1e-14, "abs": 0}
# In titin: a gigayear, the astronomical unit and ten years. In Pint: a gray, an absorbance unit and a factor of ten.
ELSEWHERE = {"Gy", "AU", "decade", "decades"}


class Row(NamedTuple):
    names: list[str]
    kind: str
    si: str
    pint: str


def table(*kinds: str) -> list[Row]:
    with open(Path(__file__).with_name("units.csv"), encoding="utf-8", newline="") as file:
        rows = [Row(row["names"].split(), row["kind"], row["SI"], row["Pint"]) for row in csv.DictReader(file)]
    return [row for row in rows if row.kind in (kinds or ("alone", "with prefixes"))]


def units() -> dict[str, tuple[Row, str]]:
    """Every unit in every spelling, with its row and Pint's name."""
    units = {name: (row, row.pint) for row in table() for name in row.names}
    for prefix in table("prefix"):
        for row in table("with prefixes"):
            for name in (written + name for written in prefix.names for name in row.names):
                # A name goes before a prefix with another name: ft is a foot.
                units.setdefault(name, (row, prefix.pint + row.pint))
    return units


def registry() -> Any:
    """Pint's units, except two: the parsec of the IAU, by the angle, and the international fathom.

    Pint computes the parsec by the angle's tangent, and the fathom from feet of the United States' survey.
    """
    registry = pint.UnitRegistry(on_redefinition="ignore")
    registry.define("parsec = 648000 / π * astronomical_unit = pc")
    registry.define("fathom = 6 * foot")
    return registry


def played(stage, settings, look):
    model = pair()
    model.settings = settings
    return stage.play(alone(look), idle, model)["sender"]


def test_every_unit_is_converted_as_by_pint(stage):
    known = units()
    oracle = registry()

    def look(instance):
        for number, (name, (row, of_pint)) in enumerate(known.items()):
            quantity = oracle.Quantity(NUMBER, of_pint)
            in_si = quantity.to_base_units().m if row.si != "1" else quantity.to("").m
            get = f"u{number}"
            assert instance.setting(get, row.si) == pytest.approx(in_si, **NEAR), name
            assert instance.setting(get, name) == NUMBER, name
            other = row.names[-1]
            assert instance.setting(get, other) == pytest.approx(quantity.to(row.pint).m, **NEAR), (name, other)
        return len(known)

    assert played(stage, {f"u{number}": f"{NUMBER} {name}" for number, name in enumerate(known)}, look) > 1000


def test_no_unit_is_taken_for_one_of_another_kind(stage):
    rows = table()
    kinds = {row.si: row.names[0] for row in rows}

    def look(instance):
        for number, row in enumerate(rows):
            for si, name in kinds.items():
                if si != row.si:
                    with pytest.raises(titin.SettingError, match="measures"):
                        instance.setting(f"u{number}", name)
        return True

    assert played(stage, {f"u{number}": f"{NUMBER} {row.names[0]}" for number, row in enumerate(rows)}, look)


def test_numbers_are_converted_without_a_run():
    oracle = registry()
    for name, (row, of_pint) in units().items():
        quantity = oracle.Quantity(NUMBER, of_pint)
        in_si = quantity.to_base_units().m if row.si != "1" else quantity.to("").m
        assert titin.convert(NUMBER, name, row.si) == pytest.approx(in_si, **NEAR), name
        assert titin.convert(NUMBER, name, name) == NUMBER
    for unit, wanted, said in [
        ("h", "m", "measures"),
        ("sx", "s", "sx"),
        ("s", "", "measures"),
        ("s\0", "s", "character 0"),
    ]:
        with pytest.raises(titin.UsageError, match=said):
            titin.convert(1.0, unit, wanted)
    with pytest.raises(titin.UsageError, match="too large"):
        titin.convert(1e300, "Gyr", "fs")


def test_a_number_alone_is_in_any_unit(stage):
    rows = table()

    def look(instance):
        for row in rows:
            for setting in ("text", "float"):
                assert instance.setting(setting, row.names[0]) == NUMBER
            assert instance.setting("whole", row.names[0]) == 5.0
        return True

    assert played(stage, {"text": str(NUMBER), "float": NUMBER, "whole": 5}, look)


def test_names_mean_in_pint_what_they_mean_here():
    oracle = registry()
    differ = set()
    for row in table():
        for name in row.names:
            try:
                one = oracle.Quantity(1.0, name)
            except pint.UndefinedUnitError:
                continue
            if not one.is_compatible_with(row.pint) or one.to(row.pint).m != pytest.approx(1.0, **NEAR):
                differ.add(name)
    assert differ == ELSEWHERE


def test_products_are_converted_as_by_pint(stage):
    """Converts each pair of neighbours in the table into each other, with powers."""
    oracle = registry()
    products = [(one, other) for one, other in pairwise(table()) if one.si != other.si]

    def look(instance):
        for number, (one, other) in enumerate(products):
            quantity = oracle.Quantity(NUMBER, f"{one.pint}**2 / {other.pint}")
            wanted = f"{one.names[-1]}2 {other.names[-1]}-1"
            assert instance.setting(f"u{number}", wanted) == pytest.approx(quantity.m, **NEAR), wanted
            with pytest.raises(titin.SettingError, match="measures"):
                instance.setting(f"u{number}", f"{one.names[0]}3/{other.names[0]}")
        return True

    settings = {f"u{n}": f"{NUMBER} {one.names[0]}^2/{other.names[0]}" for n, (one, other) in enumerate(products)}
    assert played(stage, settings, look)
