"""The text of a model's file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from titin.model._model import Component, Model

OPERATORS = ("f_init", "o_i", "s", "o_f")


def written(model: Model) -> str:
    """A model with all models inside, as yMMSL v0.2."""
    models: dict[str, Model] = {}
    programs: dict[str, dict[str, Any]] = {}
    settings: dict[str, Any] = {}
    resources: dict[str, dict[str, int]] = {}
    for path, part in _parts(model):
        if models.setdefault(part.name, part) is not part:
            raise ValueError(f"two models are called {part.name}; rename one")
        if path and part.titin:
            raise ValueError(f"model {part.name} is part of {model.name}: its section titin belongs there")
        for name, program in part.programs.items():
            if programs.setdefault(name, program) != program:
                raise ValueError(f"models {model.name} and {part.name} have different programs called {name}")
        # The outer model comes first: the outer model's settings of a part go before the part's own settings.
        settings = {f"{path}{name}": value for name, value in part.settings.items()} | settings
        resources = {f"{model.name}.{path}{name}": need for name, need in part.resources.items()} | resources
    document: dict[str, Any] = {
        "ymmsl_version": "v0.2",
        "models": {name: _model(part) for name, part in models.items()},
    }
    sections: dict[str, Mapping[str, Any]] = {
        "programs": programs,
        "settings": settings,
        "resources": resources,
        "titin": model.titin,
    }
    document |= {name: dict(section) for name, section in sections.items() if section}
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _parts(model: Model, path: str = "", within: tuple[Model, ...] = ()) -> Iterator[tuple[str, Model]]:
    """A model and all models inside, outermost first, with the path to each."""
    if model in within:
        raise ValueError(f"model {model.name} contains itself")
    yield path, model
    for component in model.components.values():
        if not isinstance(component.implementation, str | None):
            yield from _parts(component.implementation, f"{path}{component.name}.", (*within, model))


def _model(model: Model) -> dict[str, Any]:
    entry: dict[str, Any] = {"description": model.description} if model.description else {}
    if model.ports:
        entry["ports"] = _ports(model.ports)
    entry["components"] = {name: _component(model, component) for name, component in model.components.items()}
    if matching := _matching(model):
        entry["matching_timelines"] = matching
    conduits: dict[str, list[str]] = {}
    for sender, receiver, filters in model.conduits:
        conduits.setdefault(sender, []).append(" ".join([*filters, receiver]))
    if conduits:
        entry["conduits"] = {
            sender: receivers[0] if len(receivers) == 1 else receivers for sender, receivers in conduits.items()
        }
    return entry


def _component(model: Model, component: Component) -> dict[str, Any]:
    entry: dict[str, Any] = {"description": component.description or component.name}
    implementation = component.implementation
    name = implementation if isinstance(implementation, str | None) else implementation.name
    ends = (end.partition(".")[0] for conduit in model.conduits for end in conduit[:2])
    if component.ports:
        entry["ports"] = _ports(component.ports)
    elif "ports" in (program := model.programs.get(name or "", {})):
        entry["ports"] = program["ports"]
    elif component.name not in ends:
        # The ymmsl package needs the key here. For ports that are used and not listed, a program elsewhere has the
        # list.
        entry["ports"] = {}
    if name is not None:
        entry["implementation"] = name
    sizes = component.multiplicity
    if sizes:
        entry["multiplicity"] = sizes[0] if len(sizes) == 1 else list(sizes)
    if component.optional:
        entry["optional"] = True
    return entry


def _ports(ports: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {operator: list(ports[operator]) for operator in OPERATORS if ports.get(operator)}


def _matching(model: Model) -> dict[str, list[str]]:
    """The timelines of components that exchange messages in each step. The ymmsl package wants these timelines
    listed."""
    operators = {
        f"{component.name}.{port}": operator
        for component in model.components.values()
        for operator, ports in component.ports.items()
        for port in ports
    }
    callers: dict[str, tuple[str, int]] = {}
    sets: dict[str, list[str]] = {name: [name] for name in model.components}
    for sender, receiver, filters in model.conduits:
        ends = (operators.get(sender), operators.get(receiver))
        if "repeat" in filters or "pad" in filters or None in ends:
            continue
        one, other = sender.partition(".")[0], receiver.partition(".")[0]
        outward = filters.count("last") + (ends[0] == "o_f")
        if ends[1] == "f_init":
            callers.setdefault(other, (one, outward))
        elif ends == ("o_i", "s") and not outward and sets[one] is not sets[other]:
            sets[one] += sets[other]
            for name in sets[other]:
                sets[name] = sets[one]

    def timeline(name: str, within: tuple[str, ...] = ()) -> list[str]:
        if name not in callers or name in within:
            return [name]
        caller, outward = callers[name]
        around = timeline(caller, (*within, name))
        return [*around[: max(0, len(around) - outward)], name]

    groups = {id(group): group for group in sets.values() if len(group) > 1}
    chains = ([":".join(timeline(name)) for name in group] for group in groups.values())
    return {first: others for first, *others in chains}


class _Dumper(yaml.SafeDumper):
    """Writes lists in one line, and NumPy's numbers as numbers."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _list(dumper: yaml.SafeDumper, items: Sequence[Any]) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)


def _number(dumper: yaml.SafeDumper, number: Any) -> yaml.Node:
    if not hasattr(number, "item"):
        raise yaml.representer.RepresenterError(f"a description cannot hold {number!r}")
    return dumper.represent_data(number.item())


_Dumper.add_representer(list, _list)
_Dumper.add_representer(tuple, _list)
_Dumper.add_multi_representer(object, _number)
