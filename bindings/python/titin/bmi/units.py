"""Units as UDUNITS spells them, which is how models with the Basic Model Interface tell theirs.

Titin's own table (``crates/model/src/quantity/units.rs``) converts settings only, and has neither degrees Celsius nor
the year of UDUNITS. So the units of models are read here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The texts by which models say that they tell no unit.
UNTOLD = {"", "none", "n/a", "unknown"}
# The texts for numbers without dimension, beside products of units that cancel out.
PURE = {"1", "-", "dimensionless", "unitless"}

BASES = ("m", "kg", "s", "A", "K", "mol", "cd")


class UnitError(ValueError):
    """A text is not a unit, or two units do not measure the same."""


@dataclass(frozen=True)
class Unit:
    """A unit: x of it is ``x * scale + offset`` in the base units of the SI, with these powers of :data:`BASES`."""

    scale: Fraction
    offset: Fraction
    powers: tuple[int, ...]

    def times(self, other: Unit) -> Unit:
        """The product. A difference of temperatures stands for a temperature with an offset, as in ``W m-2 degC-1``."""
        return Unit(self.scale * other.scale, Fraction(0), tuple(a + b for a, b in zip(self.powers, other.powers)))

    def to_the(self, power: int) -> Unit:
        """A power of the unit."""
        if power == 1:
            return self
        return Unit(self.scale**power, Fraction(0), tuple(power * own for own in self.powers))


ONE = Unit(Fraction(1), Fraction(0), (0,) * len(BASES))

# Symbols, names, and what they are. Symbols take the prefixes' symbols, names the prefixes' names and a plural.
# A row without symbols that take prefixes begins with "!".
_TABLE = """
m | meter metre | m
kg | | kg
s | second sec | s
A | ampere | A
K | kelvin | K
mol | mole | mol
cd | candela | cd
g | gram | 1e-3 kg
t | tonne metric_ton | 1000 kg
L l | liter litre | 1e-3 m3
Hz | hertz | s-1
N | newton | kg m s-2
Pa | pascal | N m-2
bar | | 1e5 Pa
J | joule | N m
W | watt | J s-1
C | coulomb | A s
V | volt | W A-1
F | farad | C V-1
ohm Ω | | V A-1
S | siemens | A V-1
T | tesla | V s m-2
eV | electronvolt electron_volt | 1.602176634e-19 J
Bq | becquerel | s-1
rad | radian | 1
sr | steradian | 1
! min | minute | 60 s
! h hr | hour | 3600 s
! d | day | 86400 s
! | week | 7 d
! yr | year tropical_year | 31556925.9747 s
! | month | 31556925.9747 s / 12
! | julian_year Julian_year | 365.25 d
! | gregorian_year Gregorian_year | 365.2425 d
! | common_year | 365 d
! | leap_year | 366 d
! | decade | 10 yr
! | century | 100 yr
! | millennium | 1000 yr
! | micron | 1e-6 m
! | angstrom | 1e-10 m
! in | inch | 0.0254 m
! ft | foot feet | 0.3048 m
! yd | yard | 0.9144 m
! mi | mile | 1609.344 m
! nmile | nautical_mile | 1852 m
! | knot international_knot | 1852 m / 3600 / s
! ha | hectare | 1e4 m2
! lb | pound | 0.45359237 kg
! atm | atmosphere | 101325 Pa
! mmHg | | 133.322387415 Pa
! degree deg arc_degree ° | degree_north degree_east degrees_north degrees_east | 0.017453292519943295 rad
! arcmin | arcminute arc_minute | 0.017453292519943295 / 60
! arcsec | arcsecond arc_second | 0.017453292519943295 / 3600
! % | percent | 0.01
! ppm ppmv | | 1e-6
! ppb ppbv | | 1e-9
! degC °C deg_C degree_C degree_c degc | celsius Celsius degree_Celsius degree_celsius degrees_celsius | K @ 273.15
! degF °F deg_F degree_F degree_f degf | fahrenheit Fahrenheit degree_Fahrenheit degree_fahrenheit | K * 5 / 9 @ 459.67
! degK deg_K degree_K degree_k degk | degree_kelvin Kelvin | K
! degR degree_R | rankine degree_rankine | K * 5 / 9
"""

_PREFIXES = {
    "y": "yocto -24", "z": "zepto -21", "a": "atto -18", "f": "femto -15", "p": "pico -12", "n": "nano -9",
    "u": "micro -6", "µ": "micro -6", "μ": "micro -6", "m": "milli -3", "c": "centi -2", "d": "deci -1", "da": "deca 1",
    "h": "hecto 2", "k": "kilo 3", "M": "mega 6", "G": "giga 9", "T": "tera 12", "P": "peta 15", "E": "exa 18",
    "Z": "zetta 21", "Y": "yotta 24",
}  # fmt: skip


@cache
def parse(text: str) -> Unit:
    """The unit that a text spells: ``m s-1``, ``W/m^2``, ``kg m**-3``, ``1e-3 m``, ``degC``. Raises UnitError."""
    if text.strip() in PURE or text.strip() in UNTOLD:
        return ONE
    return _product(_words(text), text, _named)


def is_told(text: str | None) -> bool:
    """Whether a model tells a unit by this text."""
    return text is not None and text.strip().lower() not in UNTOLD


@dataclass(frozen=True)
class Conversion:
    """The way from numbers in one unit to numbers in another: ``x * times / over + plus``."""

    times: float
    over: float
    plus: float

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        """A new array in the other unit, in the precision of the values, but single precision or more."""
        kind = values.dtype if values.dtype.kind in "fc" else np.dtype(np.float64)
        converted: NDArray[Any] = np.array(values, dtype=np.result_type(kind, np.float32), subok=False)
        if self.times != 1.0:
            converted *= self.times
        if self.over != 1.0:
            converted /= self.over
        if self.plus != 0.0:
            converted += self.plus
        return converted


@cache
def conversion(told: str, wanted: str) -> Conversion | None:
    """How numbers become numbers in another unit; None if nothing is to be done.

    Raises UnitError for a unit that is not known, and for units that do not measure the same.
    """
    if not (is_told(told) and is_told(wanted)) or " ".join(told.split()) == " ".join(wanted.split()):
        return None
    source, target = parse(told), parse(wanted)
    if source.powers != target.powers:
        raise UnitError(f"'{told}' is {measures(source)}, and '{wanted}' is {measures(target)}")
    scale, plus = source.scale / target.scale, (source.offset - target.offset) / target.scale
    if scale == 1 and plus == 0:
        return None
    try:
        # A division by a whole number rounds once: 1 / 1000 would be rounded before.
        if scale.numerator == 1:
            return Conversion(1.0, float(scale.denominator), float(plus))
        return Conversion(float(scale), 1.0, float(plus))
    except OverflowError:
        raise UnitError(f"'{told}' is too many '{wanted}' for a number of double precision") from None


def measures(unit: Unit) -> str:
    """What a unit measures, in base units."""
    parts = [base if n == 1 else f"{base}{n}" for base, n in zip(BASES, unit.powers) if n]
    return f"in {' '.join(parts)}" if parts else "a number without dimension"


def seconds(text: str) -> Fraction:
    """The seconds of a unit of time; ``days since 1970-01-01`` is a day. Raises UnitError."""
    word = re.split(r"\s+(?:since|after|from|ref)\s", text.strip())[0]
    if not is_told(word):
        raise UnitError(f"'{text}' names no unit of time")
    unit = parse(word)
    if unit.powers != parse("s").powers:
        raise UnitError(f"'{text}' is {measures(unit)}, and no time")
    return unit.scale


def duration(text: str) -> Fraction:
    """The seconds of a duration with a unit, ``1 h``; a number alone is in seconds. Raises UnitError."""
    number, unit = quantity(text)
    if not number:
        raise UnitError(f"'{text}' is no time: write a number and a unit, such as '1 h'")
    return Fraction(number) * (seconds(unit) if unit else 1)


def quantity(text: str) -> tuple[str, str]:
    """The number and the unit of a text, each as it is written; both empty if the text begins with no number."""
    match = re.fullmatch(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?)\s*(.*?)\s*", text)
    return (match[1], match[2]) if match else ("", "")


_WORD = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?![\w])|(?P<name>[^\W\d]+(?:_[^\W\d]+)*|[%°Ω][^\W\d]*)"
    r"(?:(?:\^|\*\*)?(?P<power>[-+]?\d+)|(?P<raised>[⁻¹²³]+))?|(?P<sign>[*·./()]|per\b))"
)


def _words(text: str) -> Iterator[tuple[str, str, int]]:
    """The words of a unit: kind (number, name, sign), text, and the power of a name."""
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _WORD.match(text, at)
        if not match:
            raise UnitError(f"'{text}' is not a unit: '{text[at:].strip()}' cannot be read")
        at = match.end()
        if match["number"]:
            if not 0 < float(match["number"]) < math.inf:
                raise UnitError(f"'{text}' is not a unit: the factor {match['number']} is too small or too large")
            yield "number", match["number"], 1
        elif match["sign"] or match["name"] == "per":
            yield "sign", match["sign"] or "/", 1
        else:
            raised = (match["raised"] or "").translate(str.maketrans("⁻¹²³", "-123"))
            power = int(match["power"] or raised or 1)
            if abs(power) > 99:
                raise UnitError(f"'{text}' is not a unit: the power {power} is too large")
            yield "name", match["name"], power


def _product(
    words: Iterator[tuple[str, str, int]], text: str, named: Callable[[str, str], Unit], bracket: bool = False
) -> Unit:
    """The product of the words up to the end, or behind a bracket up to the one that closes it.

    ``named`` gives the unit of a name in this text.
    """
    unit, sign, empty = None, 1, True
    for kind, word, power in words:
        if kind == "sign" and word == ")" and bracket:
            bracket = False
            break
        if kind == "sign" and word != "(":
            if word == ")" or sign < 0 or (empty and word != "/"):
                raise UnitError(f"'{text}' is not a unit: nothing stands before '{word}'")
            sign = -1 if word == "/" else 1
            continue
        if kind == "number":
            factor = Unit(Fraction(word), Fraction(0), ONE.powers)
        elif kind == "sign":
            factor = _product(words, text, named, bracket=True)
        else:
            factor = named(word, text).to_the(power)
        factor = factor.to_the(sign)
        unit, sign, empty = factor if unit is None else unit.times(factor), 1, False
    if unit is None or sign < 0 or bracket:
        raise UnitError(f"'{text}' is not a unit")
    return unit


def _named(name: str, text: str) -> Unit:
    """The unit with this name, maybe with a prefix or in the plural."""
    symbols, names = _tables()
    if name in symbols:
        return symbols[name][0]
    for word in _singular(name):
        if word in names:
            return names[word][0]
    for prefix, meaning in _PREFIXES.items():
        long, power = meaning.split()
        factor = Unit(Fraction(10) ** int(power), Fraction(0), ONE.powers)
        found = symbols.get(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if found and found[1]:
            return factor.times(found[0])
        for word in _singular(name.removeprefix(long)) if name.startswith(long) else ():
            if word in names and names[word][1]:
                return factor.times(names[word][0])
    if len(name) > 3 and name != name.lower():
        return _named(name.lower(), text)
    near = get_close_matches(name, [*symbols, *names], 1)
    where = "" if name == text else f" in '{text}'"
    hint = f": '{near[0]}' may be meant" if near else ""
    raise UnitError(f"'{name}'{where} is no unit that titin knows{hint}")


def _singular(name: str) -> Iterator[str]:
    yield name
    if name.endswith("ies"):
        yield name[:-3] + "y"
    if name.endswith("es"):
        yield name[:-2]
    if name.endswith("s"):
        yield name[:-1]


@cache
def _tables() -> tuple[dict[str, tuple[Unit, bool]], dict[str, tuple[Unit, bool]]]:
    """Units by symbol and by name, each with whether prefixes may stand before it."""
    symbols: dict[str, tuple[Unit, bool]] = {}
    names: dict[str, tuple[Unit, bool]] = {}
    for row in _TABLE.strip().splitlines():
        short, long, definition = (part.strip() for part in row.split("|"))
        prefixed = not short.startswith("!")
        unit = _defined(definition, symbols | names)
        symbols |= dict.fromkeys(short.removeprefix("!").split(), (unit, prefixed))
        names |= dict.fromkeys(long.split(), (unit, prefixed))
    symbols.pop("kg")
    return symbols, names


def _defined(definition: str, known: dict[str, tuple[Unit, bool]]) -> Unit:
    """A unit by its row's definition, in units of the rows before. Behind ``@`` stands an offset in this unit."""
    product, _, offset = definition.partition("@")

    def named(name: str, _: str) -> Unit:
        if name in known:
            return known[name][0]
        powers = [0] * len(BASES)
        powers[BASES.index(name)] = 1
        return Unit(Fraction(1), Fraction(0), tuple(powers))

    unit = _product(_words(product), product, named)
    return Unit(unit.scale, Fraction(offset.strip()) * unit.scale, unit.powers) if offset else unit
