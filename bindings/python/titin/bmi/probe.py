"""What the models of a description tell before a run, for ``titin check --probe``."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from titin.bmi import config
from titin.bmi.grids import Grid
from titin.bmi.loading import make
from titin.bmi.model import Model, ModelError
from titin.bmi.options import SETTINGS, read_options
from titin.bmi.parallel import Ranks
from titin.bmi.ports import Variable, assign, fits
from titin.bmi.time import Clock
from titin.bmi.units import UnitError, conversion


@dataclass(frozen=True)
class _Port:
    """A port as the description has it."""

    name: str
    operator: str
    connected: bool
    vector: bool = False


def probe(told: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """What each port of a component carries: variable, type, shape and units.

    ``told`` are the options of the command; ``question`` has the ``instance``, its ``settings``, its ``ports``, and the
    ``files`` that a run would copy. The model is initialized and finalized in a folder of its own. Raises
    :class:`ModelError`, and what the model raises.
    """
    settings = question["settings"]
    options = read_options(told, {name: settings[name] for name in SETTINGS.values() if name in settings})
    if not options.model:
        raise ModelError(f"{question['instance']} has no model: name one by the setting bmi, package.module:Class")
    with tempfile.TemporaryDirectory() as folder:
        for file in question["files"]:
            copy = shutil.copytree if os.path.isdir(file) else shutil.copy2
            copy(file, os.path.join(folder, os.path.basename(file)))
        os.chdir(folder)
        model = Model(options.model, make(options.model))
        path = config.fill(options.config, settings, config.given(settings), Path(folder))
        Ranks().initialize(model, path)
        declared = [_Port(**port) for port in question["ports"] if port["name"] != "muscle_settings_in"]
        variables = assign(declared, options.variables, model)
        ports = [port for port in declared if port.connected]
        grids: dict[int, Grid] = {}
        found = {port.name: Variable(model, variables[port.name], port.name, grids) for port in ports}
        Clock(model, options, [port.name for port in ports if port.operator in ("o_i", "s")])
        carried = {name: _told(model, variable) for name, variable in found.items()}
        model.call("finalize", lacking="write it")
        os.chdir("/")
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
