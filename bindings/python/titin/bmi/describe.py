"""What a model has to couple: a component of yMMSL to paste, with types, units and grids beside the ports."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from titin.bmi import config
from titin.bmi.grids import Grid
from titin.bmi.loading import make
from titin.bmi.model import Model
from titin.bmi.options import Options
from titin.bmi.parallel import Ranks
from titin.bmi.ports import Variable
from titin.bmi.units import UnitError, seconds


def known(options: Options, settings: Mapping[str, str]) -> dict[str, Any]:
    """What a model tells, after ``initialize`` with its configuration and these settings.

    Raises :class:`ModelError`, and what the model raises.
    """
    model = Model(options.model, make(options.model))
    with tempfile.TemporaryDirectory() as folder:
        path = config.fill(options.config, settings, config.given(settings, ": add --setting {name}=..."), Path(folder))
        Ranks().initialize(model, path)
        grids: dict[int, Grid] = {}
        ways = {"inputs": "get_input_var_names", "outputs": "get_output_var_names"}
        told: dict[str, Any] = {
            "model": options.model,
            "config": options.config,
            "component": model.text("get_component_name"),
            "time": _times(model, options),
        }
        for way, method in ways.items():
            told[way] = [_variable(Variable(model, name, name, grids)) for name in model.names(method)]
        told["grids"] = [_plain(grid.told()) for grid in grids.values()]
        model.call("finalize", lacking="write it")
    return told


def component(told: Mapping[str, Any], colored: bool = False) -> str:
    """The component as yMMSL, to be pasted into a description."""
    name = _identifier(told["component"] or told["model"].rpartition(":")[2]).lower()
    times = told["time"]
    paint = _painted if colored else str
    lines = [
        paint(f"# {told['model']}: times from {_number(times['start'])} to {_number(times['end'])} {times['units']}, "
              f"by steps of {_number(times['step'])}"),
        "components:",
        f"  {name}:",
        f"    description: {json.dumps(told['component'] or name)}",
        "    ports:",
    ]  # fmt: skip
    renamed: dict[str, str] = {}
    used: set[str] = set()
    for way, first, other in (("inputs", "s", "f_init"), ("outputs", "o_i", "o_f")):
        if told[way]:
            lines.append(f"      {first}:  {paint(f'# or {other}')}")
        for variable in told[way]:
            port = _identifier(variable["name"])
            while port in used:
                port += "_out"
            used.add(port)
            if port != variable["name"]:
                renamed[port] = variable["name"]
            lines.append(f"      - {port}  {paint(f'# {_told(variable)}')}")
    lines += [f"    implementation: {name}", "programs:", f"  {name}:", "    titin:"]
    lines += [f"      {key}: {_word(told[of])}" for key, of in (("bmi", "model"), ("config", "config")) if told[of]]
    if renamed:
        pairs = ", ".join(f"{port}: {_word(variable)}" for port, variable in renamed.items())
        lines.append(f"      variables: {{{pairs}}}")
    lines += [paint(f"# grid {grid['id']}: {_grid(grid)}") for grid in told["grids"]]
    return "\n".join(lines) + "\n"


def _times(model: Model, options: Options) -> dict[str, Any]:
    units = model.text("get_time_units") or options.time_units
    start, end, step = model.number("get_start_time"), model.optional("get_end_time"), model.optional("get_time_step")
    try:
        scale: float | None = float(seconds(units))
    except UnitError:
        scale = None
    return {"units": units, "start": start, "end": _real(end), "step": _real(step), "seconds": scale}


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "name": variable.name,
        "type": str(variable.kind),
        "units": variable.units,
        "shape": list(variable.shape),
        "names": list(variable.names),
        "location": variable.location,
        "grid": variable.grid.number,
    }


def _told(variable: Mapping[str, Any]) -> str:
    shape = " by ".join(map(str, variable["shape"])) or "single value"
    names = f" ({', '.join(variable['names'])})" if variable["names"] else ""
    return f"{variable['type']}, {shape}{names}, {variable['units'] or 'no unit'}, grid {variable['grid']}"


def _grid(grid: Mapping[str, Any]) -> str:
    told = [grid["type"] or "of no type"]
    for key in ("shape", "spacing", "origin", "size"):
        if key in grid:
            told.append(f"{key} {grid[key]}")
    told += [
        f"{key}: {len(value)} numbers" for key, value in grid.items() if isinstance(value, list) and len(value) > 3
    ]
    return ", ".join(told)


def _plain(grid: dict[str, Any]) -> dict[str, Any]:
    """The grid with lists in the place of arrays."""
    return {key: value.tolist() if hasattr(value, "tolist") else value for key, value in grid.items()}


def _identifier(name: str) -> str:
    """A name that a port may have."""
    word = re.sub(r"\W+", "_", name).strip("_")
    return word if re.match(r"[A-Za-z_]", word) else f"v_{word}"


def _real(value: Any) -> float | None:
    """A number of a method that the model need not have; None for what has no place in JSON."""
    try:
        return float(value) if isinstance(value, Real) and math.isfinite(value) else None
    except OverflowError:
        return None


def _number(value: Any) -> str:
    return "nothing" if value is None else f"{value:g}"


def _word(word: str) -> str:
    """A word in a list of YAML."""
    return word if re.fullmatch(r"[\w./=-]+", word) else json.dumps(word)


def _painted(text: str) -> str:
    return f"\033[2m{text}\033[0m"
