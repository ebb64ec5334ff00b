"""The configuration of a model, with the places for settings filled in."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import titin
from titin.bmi.model import ModelError, near
from titin.bmi.units import quantity

# {name}, {a.name}, or {name:unit}; {{name}} stands for {name} itself.
_PLACE = re.compile(r"\{\{(?P<itself>[A-Za-z_][\w.]*)\}\}|\{(?P<name>[A-Za-z_][\w.]*)(?::(?P<unit>[^\s{}\"',]+))?\}")

Look = Callable[[str, str | None], Any]


def fill(config: str, known: Mapping[str, Any], look: Look, folder: Path) -> str:
    """The path of the configuration for a use: the file itself, or a copy in ``folder`` with the places filled in.

    ``look`` gives the value of a setting, in a unit if one is asked for; ``known`` has the names. Raises
    :class:`ModelError` without such a file, and for a place that names no setting.
    """
    if not config:
        return ""
    path = Path(config)
    if not path.exists():
        raise ModelError(
            f"there is no configuration {path.absolute()}: write an absolute path, or have titin: stage copy the file "
            f"into the work directory ({Path.cwd()})"
        )
    if path.is_dir():
        return config
    content = path.read_bytes()
    if b"\0" in content:
        # A file of numbers, and not of text, has no places.
        return config
    # Text in any encoding is written as it was read.
    text = content.decode("utf-8", "surrogateescape")
    filled = _PLACE.sub(lambda place: _value(place, text, path, known, look), text)
    if filled == text:
        return config
    target = folder / path.name
    if target.exists() and target.samefile(path):
        target = folder / f"{path.stem}.filled{path.suffix}"
    # Each rank of a model writes the file: another may be reading it.
    own = folder / f".{target.name}.{os.getpid()}"
    own.write_bytes(filled.encode("utf-8", "surrogateescape"))
    own.replace(target)
    return str(target)


def given(settings: Mapping[str, Any], add: str = "") -> Look:
    """Looks settings up as the instance of a run does, before there is one; a text with a unit is converted.

    ``add`` says what to do about a setting that is not there, ``{name}``.
    """

    def look(name: str, unit: str | None) -> Any:
        if name not in settings:
            raise ModelError(f"there is no setting {name}{add.format(name=name)}")
        value = settings[name]
        if unit is None or isinstance(value, int | float):
            return value
        number, own = quantity(str(value))
        if not number:
            raise ModelError(f"setting {name} is {value!r}, and no quantity in {unit}")
        return titin.convert(float(number), own or unit, unit)

    return look


def _value(place: re.Match[str], text: str, path: Path, known: Mapping[str, Any], look: Look) -> str:
    """What stands in a place."""
    if place["itself"]:
        return f"{{{place['itself']}}}"
    name = place["name"]
    try:
        value = look(name, place["unit"])
    except Exception as error:
        line = text.count("\n", 0, place.start()) + 1
        names = sorted({key.rpartition(".")[2] for key in known} | set(known))
        meant = "" if name in names else near(name, names)
        raise ModelError(
            f"{path}, line {line}: the place {place[0]} cannot be filled in: {error}{meant}. To write {place[0]} "
            "itself, double the braces"
        ) from None
    # Numbers, truth values and lists are written alike in JSON and YAML.
    return value if isinstance(value, str) else json.dumps(value)
