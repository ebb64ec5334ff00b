"""Settings as MUSCLE3 looks them up and types them."""

from __future__ import annotations

import re
from collections.abc import Mapping

Value = str | int | float | bool | list[int] | list[float] | list[list[float]]

#: What a value of each type is. A list is judged by its first element, and an empty one is of any type.
_IS = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, int),
    "float": lambda value: isinstance(value, float),
    "bool": lambda value: isinstance(value, bool),
    "[int]": lambda value: _is_list_of(value, int),
    "[float]": lambda value: _is_list_of(value, float),
    "[[float]]": lambda value: _is_list_of(value, list),
}

_PART = re.compile(r"[^.\[\]]+|\[\d+\]")


def look_up(settings: Mapping[str, Value], instance: str, name: str, typ: str | None) -> Value:
    """The most specific value of a setting: that of the instance, of its component, of a component around, of all.

    Raises KeyError if there is none, TypeError if the value is of another type than ``typ`` (which is None for any, or
    one of MUSCLE3's names of types), and ValueError if there is no such type.
    """
    if typ is not None and typ not in _IS:
        raise ValueError(f"Invalid setting type specified: {typ}; types are {', '.join(_IS)}")
    for prefix in _prefixes(instance):
        if (full := prefix + name) in settings:
            value = settings[full]
            break
    else:
        raise KeyError(
            f'Value for setting "{name}" was not set. Set it under `settings` in the yMMSL file, as {name} or '
            f"{instance}.{name}, or give a default"
        )
    if typ is not None and not _IS[typ](value):
        raise TypeError(
            f'Value for setting "{full}" is of type {type(value)}, where {typ} was expected: {value!r}. Change the '
            "value in the yMMSL file, or the type in the program"
        )
    return value


def names(settings: Mapping[str, Value], instance: str) -> list[str]:
    """The names under which this instance can ask for settings: those of all, and those set for it by its full name."""
    own = f"{instance}."
    of_all = {name for name in settings if not ("." in name or "[" in name)}
    return sorted(of_all | {name.removeprefix(own) for name in settings if name.startswith(own)})


def _prefixes(instance: str) -> list[str]:
    """``a.b[1].``, ``a.b.``, ``a.`` and nothing, for ``a.b[1]``."""
    prefixes, so_far = [""], ""
    for part in _PART.findall(instance):
        so_far += part if part.startswith("[") or not so_far else f".{part}"
        prefixes.append(f"{so_far}.")
    return prefixes[::-1]


def _is_list_of(value: Value, kind: type) -> bool:
    return isinstance(value, list) and (not value or isinstance(value[0], kind))
