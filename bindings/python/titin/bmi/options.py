"""What a user says about a model: arguments of the command, or settings of the component in their place."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from titin.bmi.model import ModelError
from titin.bmi.units import UnitError, duration

# Times in seconds. Shorter and longer ones may be no numbers of double precision in the model's unit.
_SHORT, _LONG = 1e-200, 1e200
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Options:
    """The options of a model. Each has a setting: ``config`` is ``bmi_config``, and ``model`` is ``bmi``."""

    model: str = ""
    """``package.module:Class``, ``file.py:Class`` or ``libmodel.so:register_bmi``."""
    config: str = ""
    """The file that ``initialize`` gets."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """The variable of a port, where the two have different names."""
    every: Mapping[str, Fraction] = field(default_factory=dict[str, Fraction])
    """How often a port is used, in seconds; the name "" stands for all ports."""
    end: Fraction | None = None
    """How long a use lasts, in seconds, in place of the model's own end."""
    metadata: bool = True
    """Whether messages tell units and grids: a map with the array in it, and not the array alone."""
    time_units: str = ""
    """The unit of the model's times, if the model tells none."""
    fields: frozenset[str] = frozenset()
    """The ports that carry fields, if the variable is an array; ``titin run`` knows them from the description."""
    units: Mapping[str, str] = field(default_factory=dict[str, str])
    """The unit of what comes by a field, which tells none itself; without it nothing is converted."""
    blocks: bool = False
    """Whether the arrays of the ranks follow each other along the first dimension, where the model tells no parts."""


# The setting of each option.
SETTINGS = {part.name: "bmi" if part.name == "model" else f"bmi_{part.name}" for part in dataclasses.fields(Options)}


def read_options(told: Mapping[str, Any], settings: Mapping[str, Any]) -> Options:
    """The options that the command has been given, and settings for those that it has not been given.

    Raises :class:`ModelError` for values that cannot be read.
    """
    values = {name: settings[setting] for name, setting in SETTINGS.items() if setting in settings}
    values |= {name: value for name, value in told.items() if value not in (None, "", [])}
    for name, value in values.items():
        values[name] = _READ[name](SETTINGS[name], value)
    return Options(**values)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ModelError(f"{name} is {value!r}, and not a text")
    return value.strip()


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if not isinstance(value, bool):
        raise ModelError(f"{name} is {value!r}: write true or false")
    return value


def _pairs(name: str, value: Any) -> dict[str, str]:
    """``z: a, q: b``, a map in braces too, or a list of such texts; a part that is no pair has the key ""."""
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise ModelError(f"{name} is {value!r}: write a text such as 'z: ..., q: ...'")
    found: dict[str, str] = {}
    for part in (part.strip() for text in texts for part in text.strip().strip("{}").split(",")):
        if not part:
            continue
        key, sign, what = part.partition("=" if "=" in part else ":")
        key, what = key.strip(), what.strip().strip("'\"")
        if not (sign and key and what):
            key, what = "", part
        if key in found:
            raise ModelError(f"{name} names {key or 'all ports'} twice")
        found[key] = what
    return found


def _names(name: str, value: Any) -> frozenset[str]:
    """``z, q``, or a list of such texts."""
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise ModelError(f"{name} is {value!r}: write names such as 'z, q'")
    return frozenset(part.strip() for text in texts for part in text.split(",") if part.strip())


def _variables(name: str, value: Any) -> dict[str, str]:
    found = _pairs(name, value)
    if "" in found:
        raise ModelError(f"{name}: '{found['']}' is no pair: write port: {name.removeprefix('bmi_')[:-1]}")
    return found


def _every(name: str, value: Any) -> dict[str, Fraction]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return {port: _duration(f"{name} of {port or 'all ports'}", text) for port, text in _pairs(name, value).items()}


def _duration(name: str, value: Any) -> Fraction:
    try:
        found = duration(str(value))
    except UnitError as error:
        raise ModelError(f"{name}: {error}") from None
    if not _SHORT < found < _LONG:
        raise ModelError(f"{name} is {value}: a time above 0 is needed")
    return found


_READ: dict[str, Callable[[str, Any], Any]] = {
    "model": _text,
    "config": _text,
    "variables": _variables,
    "every": _every,
    "end": _duration,
    "metadata": _flag,
    "time_units": _text,
    "fields": _names,
    "units": _variables,
    "blocks": _flag,
}
