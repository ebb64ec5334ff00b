"""The program of a component: the uses of a model, in the order of the submodel execution loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import titin
from titin.bmi import config
from titin.bmi.exchange import Exchange, Fields, Messages
from titin.bmi.grids import Grid
from titin.bmi.loading import load, make
from titin.bmi.model import Model, ModelError
from titin.bmi.options import SETTINGS, Options, read_options
from titin.bmi.parallel import Parts, Ranks
from titin.bmi.ports import Variable, assign
from titin.bmi.time import Clock
from titin.errors import Deadlock, FilterError, PortClosed

_NOT_SET = object()
_STEPS = "models with other steps use their ports equally often by the same --every (bmi_every) and --end (bmi_end)"
# What to do about errors of titin's own, in terms of the options of a model.
_HINTS = {
    Deadlock: _STEPS,
    FilterError: "--no-metadata (bmi_metadata: false) has messages carry the array alone",
    PortClosed: _STEPS,
}


def run(told: Mapping[str, Any], mpi: bool = False) -> None:
    """Takes part in the run that the environment names, with these options; settings stand for those not given.

    ``mpi``: the model runs on all ranks of the MPI that has started this process. Returns when there is no further
    use. Raises as :class:`titin.Instance`, :class:`ModelError`, and what the model raises; the run then fails with this
    instance as its culprit.
    """
    ranks = Ranks.of_world() if mpi else Ranks()
    with titin.Instance(comm=ranks.comm) as instance:
        # A model that is not found ends the run before anything is waited for.
        load(_options(instance, told).model)
        fields = Fields(instance)
        try:
            while instance.reuse():
                options = _options(instance, told)
                _use(instance, options, Model(options.model, make(options.model)), ranks, fields)
        except (Deadlock, FilterError, PortClosed) as error:
            error.add_note(f"titin.bmi: {_HINTS[type(error)]}")
            raise


def _options(instance: titin.Instance, told: Mapping[str, Any]) -> Options:
    found = {name: instance.setting(name, None, default=_NOT_SET) for name in SETTINGS.values()}
    options = read_options(told, {name: value for name, value in found.items() if value is not _NOT_SET})
    if not options.model:
        raise ModelError(
            f"{instance.name} has no model: name one behind `run`, package.module:Class, or by the setting bmi"
        )
    return options


def _use(instance: titin.Instance, options: Options, model: Model, ranks: Ranks, fields: Fields) -> None:
    """One use of a model, from ``initialize`` to ``finalize``."""
    path = config.fill(options.config, instance.settings, lambda *asked: _setting(instance, *asked), instance.workdir)
    ranks.initialize(model, path)
    declared = [port for port in instance.ports.values() if port.name != "muscle_settings_in"]
    variables = assign(declared, options.variables, model)
    grids: dict[int, Grid] = {}
    parts = Parts(model, ranks, options.blocks)
    by: dict[str, list[Exchange]] = {"f_init": [], "o_i": [], "s": [], "o_f": []}
    for port in declared:
        if port.connected:
            variable = Variable(model, variables[port.name], port.name, grids, parts)
            by[port.operator].append(_exchange(instance, options, port, variable, ranks, fields))
    clock = Clock(model, options, [exchange.port for exchange in by["o_i"] + by["s"]], instance.time_unit)

    # F_INIT
    stamps = [exchange.receive() for exchange in by["f_init"]]
    if stamps:
        clock.begin(max(stamp for stamp in stamps if stamp is not None))

    while not clock.is_over():
        # O_I
        for exchange in by["o_i"]:
            if clock.is_due(exchange.port):
                exchange.send(exchange.taken(), clock.stamp(clock.now), clock.next(exchange.port))
        # S
        for exchange in by["s"]:
            if clock.is_due(exchange.port):
                exchange.receive()
        clock.advance()

    # O_F. The memory of the model ends with finalize, so the values are taken before.
    last = [(exchange, _kept(exchange.taken())) for exchange in by["o_f"]]
    model.call("finalize", lacking="write it")
    for exchange, data in last:
        exchange.send(data, clock.stamp(clock.now))


def _exchange(
    instance: titin.Instance, options: Options, port: titin.Port, variable: Variable, ranks: Ranks, fields: Fields
) -> Exchange:
    """What goes by a port: a field for an array of a port that carries fields, else messages."""
    if port.name in options.fields and variable.whole:
        return fields.of(variable, port.operator in ("o_i", "o_f"), options.units.get(port.name, ""))
    return Messages(instance, variable, ranks, options.metadata, port.slots if port.vector else None)


def _setting(instance: titin.Instance, name: str, unit: str | None) -> Any:
    """A setting for a place of the configuration."""
    return instance.setting(name, unit) if unit else instance.setting(name)


def _kept(data: Any) -> Any:
    """Data that outlive the model: its arrays are copied."""
    if isinstance(data, dict):
        return {key: _kept(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_kept(value) for value in data]
    if not isinstance(data, np.ndarray):
        return data
    names = getattr(data, "names", None)
    return titin.Array(np.array(data, subok=False), names) if names else np.array(data, subok=False)
