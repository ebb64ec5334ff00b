"""Units as UDUNITS spells them, against UDUNITS itself."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from gimli import units as udunits
from titin.bmi import units

NUMBER = 3.7
# Units of ours that UDUNITS does not spell so.
OURS = {"deg", "decade", "century", "millennium", "rankine"}
# UDUNITS has values of before 2019.
OLDER = {"eV", "electronvolt", "electron_volt"}
TEXTS = """
kilometers; Pascals; mbar; hPa; MPa; uPa; dam; m s-1; W m-2; kg m-3 s-1; 1e-3 m; 10 m; mm/hr; km2; J kg-1 K-1; days
hours; inches; feet; years; m^3 s^-1; m**3; W/m2/K; kg/(m2 s); m.s-1; degC m; umol m-2 s-1; degrees_celsius
m per s; meter second-1; kg m-2 s-1; mol/(m3 s); 1; m3 m-3; µm; millimeters day-1; K2; s-2; nmile; Joules; Hz; mmol; cm3
min; g cm-3
"""


def near(told, wanted):
    return udunits.Unit(told).to(udunits.Unit(wanted))(NUMBER)


def base(unit):
    return " ".join(f"{name}{power}" for name, power in zip(units.BASES, unit.powers) if power) or "1"


def spelled():
    symbols, names = units._tables()
    return sorted({*symbols, *names} - OURS - OLDER)


@pytest.mark.parametrize(
    "text", [*spelled(), *(text.strip() for text in TEXTS.replace("\n", ";").split(";") if text.strip())]
)
def test_a_unit_is_that_of_udunits(text):
    unit = units.parse(text)
    ours = float(Fraction(NUMBER) * unit.scale + unit.offset)
    assert math.isclose(ours, near(text, base(unit)), rel_tol=1e-12)


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ("degC", "K"),
        ("K", "degC"),
        ("degF", "degC"),
        ("m", "km"),
        ("km", "mm"),
        ("mm/hr", "m s-1"),
        ("h", "d"),
        ("1", "%"),
        ("degC", "degF"),
    ],
)
def test_numbers_are_converted_as_by_udunits(told, wanted):
    convert = units.conversion(told, wanted)
    found = convert(np.array([NUMBER, -1.0]))
    assert found.dtype == np.float64
    assert math.isclose(found[0], near(told, wanted), rel_tol=1e-14)
    assert convert(np.float32([NUMBER])).dtype == np.float32
    assert convert(np.array([3], np.int32)).dtype == np.float64


@pytest.mark.parametrize(
    ("told", "wanted"),
    [("m", "m"), ("m  s-1", "m s-1"), ("m/s", "m s-1"), ("", "K"), ("K", ""), ("none", "K"), ("-", "1")],
)
def test_nothing_is_done_where_units_are_alike_or_not_told(told, wanted):
    assert units.conversion(told, wanted) is None


def test_a_thousandth_is_a_division():
    """So that it rounds once."""
    assert units.conversion("mm", "m")(np.array([0.3]))[0] == 0.3 / 1000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("furlong", "'furlong' is no unit"),
        ("metr", "'meter' may be meant|'metre' may be meant"),
        ("m s-", "'-' cannot be read"),
        ("(m", "is not a unit"),
        ("m)", "nothing stands before"),
        ("m//s", "nothing stands before '/'"),
        ("m/", "is not a unit"),
        ("kg furlong-2", "'furlong' in 'kg furlong-2'"),
    ],
)
def test_what_is_no_unit(text, said):
    with pytest.raises(units.UnitError, match=said):
        units.parse(text)


def test_units_that_measure_other_things():
    with pytest.raises(units.UnitError, match="'kg' is in kg, and 'm' is in m"):
        units.conversion("kg", "m")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("s", 1),
        ("days since 1970-01-01", 86400),
        ("hours", 3600),
        ("min", 60),
        ("ms", Fraction(1, 1000)),
        ("week", 604800),
    ],
)
def test_units_of_time(text, seconds):
    assert units.seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1 h", 3600), ("90", 90), ("1.5e3 ms", Fraction(3, 2)), ("0.1 s", Fraction(1, 10)), ("2d", 172800)],
)
def test_durations(text, seconds):
    assert units.duration(text) == seconds
