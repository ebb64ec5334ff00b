"""What the models of a description tell before a run, for ``titin check --probe``."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import titin
from titin.bmi import config
from titin.bmi.grids import Grid
from titin.bmi.loading import make
from titin.bmi.model import Model, ModelError
from titin.bmi.options import SETTINGS, read_options
from titin.bmi.ports import Variable, assign, fits
from titin.bmi.time import Clock
from titin.bmi.units import UnitError, conversion, quantity


@dataclass(frozen=True)
class _Port:
    """A connected port as the description has it."""

    name: str
    operator: str
    vector: bool = False
    connected: bool = True


def probe(told: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """What each port of a component carries: variable, type, shape and units.

    ``told`` are the options of the command; ``question`` has the ``instance``, its ``settings``, and the operators of
    its ``ports``. The model is initialized and finalized in an empty folder. Raises :class:`ModelError`, and what the
    model raises.
    """
    settings = question["settings"]
    options = read_options(told, {name: settings[name] for name in SETTINGS.values() if name in settings})
    if not options.model:
        raise ModelError(f"{question['instance']} has no model: name one by the setting bmi, package.module:Class")
    model = Model(options.model, make(options.model))
    with tempfile.TemporaryDirectory() as folder:
        path = config.fill(options.config, settings, lambda *asked: _setting(settings, *asked), Path(folder))
        path = os.path.abspath(path) if path else path
        with contextlib.chdir(folder):
            model.call("initialize", path, lacking="write it")
            ports = [_Port(name, operator) for name, operator in question["ports"].items()]
            variables = assign(ports, options.variables, model)
            grids: dict[int, Grid] = {}
            found = {port.name: Variable(model, variables[port.name], port.name, grids) for port in ports}
            Clock(model, options, [port.name for port in ports if port.operator in ("o_i", "s")])
            carried = {name: _told(model, variable) for name, variable in found.items()}
            model.call("finalize", lacking="write it")
    return carried


def match(pairs: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[str | None]:
    """Why what one variable ``sends`` cannot be what the other ``takes``, for each pair; None if it can."""
    return [_mismatch(pair["sends"], pair["takes"]) for pair in pairs]


def _mismatch(sends: Mapping[str, Any], takes: Mapping[str, Any]) -> str | None:
    ends = f"{sends['variable']} of {sends['model']} is sent to {takes['variable']} of {takes['model']}"
    try:
        conversion(sends["units"], takes["units"])
    except UnitError as error:
        return f"{ends}: {error}"
    if fits(sends["shape"], takes["shape"]):
        return None
    shapes = f"their shapes are {sends['shape']} and {takes['shape']}"
    return f"{ends}: {shapes}; put a component between the two that maps one grid to the other"


def _told(model: Model, variable: Variable) -> dict[str, Any]:
    return {
        "model": model.name,
        "variable": variable.name,
        "type": str(variable.kind),
        "shape": list(variable.shape),
        "units": variable.units,
    }


def _setting(settings: Mapping[str, Any], name: str, unit: str | None) -> Any:
    """A setting for a place of the configuration, as the instance would read it."""
    if name not in settings:
        raise ModelError(f"there is no setting {name}")
    value = settings[name]
    if unit is None or isinstance(value, int | float):
        return value
    number, own = quantity(str(value))
    if not number:
        raise ModelError(f"setting {name} is {value!r}, and no quantity in {unit}")
    return titin.convert(float(number), own or unit, unit)
