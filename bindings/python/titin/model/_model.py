"""The model and its components."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from titin.model._document import OPERATORS, written
from titin.model._network import Edges, edges_of, identifiers


@dataclass
class Component:
    """A submodel, mapper or terminal of a model. Made by :meth:`Model.component`."""

    name: str
    implementation: str | Model | None = None
    description: str = ""
    ports: dict[str, list[str]] = field(default_factory=dict)
    """Names of ports by operator: ``f_init``, ``o_i``, ``s``, ``o_f``."""
    multiplicity: tuple[int, ...] = ()
    """Instances in each dimension; empty for one instance."""
    optional: bool = False

    def port(self, operator: str, name: str) -> str:
        """Adds a port, unless it is there, and gives its full name: ``macro.state_out``."""
        _add_port(self.ports, operator, name)
        return f"{self.name}.{name}"


class Model:
    """A model under construction: components, conduits, settings, programs.

    ``settings``, ``resources`` and ``titin`` are dicts that go into the file unchanged: settings by name (``"dt"``,
    ``"macro.dt"``), resources by component (``{"macro": {"threads": 2}}``), and the sections under the key ``titin``,
    such as ``{"scales": {"macro": {"dt": "1 s"}}}``.

    A model may be the implementation of a component of another model. The ports of the component are then those of the
    inner model (:meth:`port`). Programs, settings and resources of the inner model go along: a setting ``"dt"`` of the
    model that implements component ``block`` becomes ``"block.dt"``, and the outer model may set ``"block.dt"``
    otherwise. Only the outermost model has ``titin``, with paths from there (``"block.macro"``).
    """

    def __init__(self, name: str, description: str = "") -> None:
        self.name = name
        self.description = description
        self.components: dict[str, Component] = {}
        self.settings: dict[str, Any] = {}
        self.resources: dict[str, dict[str, int]] = {}
        self.titin: dict[str, Any] = {}
        self.ports: dict[str, list[str]] = {}
        self.programs: dict[str, dict[str, Any]] = {}
        self.conduits: list[tuple[str, str, tuple[str, ...]]] = []

    def port(self, operator: str, name: str) -> str:
        """Adds a port to the model itself, for a model that implements a component; gives the port's name."""
        _add_port(self.ports, operator, name)
        return name

    def component(
        self,
        name: str,
        implementation: str | Model | None = None,
        *,
        f_init: Iterable[str] = (),
        o_i: Iterable[str] = (),
        s: Iterable[str] = (),
        o_f: Iterable[str] = (),
        multiplicity: int | Sequence[int] = (),
        description: str = "",
        optional: bool = False,
    ) -> Component:
        """Adds a component. Ports may be given here or by :meth:`Component.port`. If a model implements the component,
        the ports are known."""
        if name in self.components:
            raise ValueError(f"model {self.name} has a component {name} already")
        sizes = (multiplicity,) if isinstance(multiplicity, int) else tuple(multiplicity)
        component = Component(name, implementation, description, multiplicity=sizes, optional=optional)
        for operator, names in zip(OPERATORS, (f_init, o_i, s, o_f)):
            known = implementation.ports.get(operator, ()) if isinstance(implementation, Model) else ()
            for port in [*known, *(names.split() if isinstance(names, str) else names)]:
                component.port(operator, port)
        self.components[name] = component
        return component

    def program(
        self,
        name: str,
        executable: str | os.PathLike[str] | None = None,
        args: Sequence[str] = (),
        *,
        script: str | None = None,
        description: str = "",
        **fields: Any,
    ) -> None:
        """Adds a program that components name as their implementation.

        ``fields`` are the keys of yMMSL: ``env``, ``modules``, ``virtual_env``, ``execution_model``, ``ports``,
        ``supported_settings``, ``keeps_state_for_next_use`` and so on.
        """
        entry: dict[str, Any] = {"description": description} if description else {}
        if executable is not None:
            entry["executable"] = os.fspath(executable)
        if args:
            entry["args"] = [str(argument) for argument in args]
        if script is not None:
            entry["script"] = script
        self.programs[name] = entry | fields

    def conduit(self, sender: str, receiver: str, *filters: str) -> None:
        """Connects two ports, ``"macro.out"`` to ``"micro.in"``, over filters such as ``"last"``, in order.

        A sender may have several receivers. Ports of the model itself have no component: ``"start"``.
        """
        self.conduits.append((sender, receiver, filters))

    def connect(self, sender: Component, out: str, receiver: Component, into: str, *filters: str) -> None:
        """Connects port ``out`` of ``sender``, which sends in O_I, to port ``into`` of ``receiver``, which receives in
        S."""
        self.conduit(sender.port("o_i", out), receiver.port("s", into), *filters)

    def ring(
        self,
        name: str,
        count: int,
        implementation: str | Model | None = None,
        *,
        sides: tuple[str, str] = ("left", "right"),
        both: bool = True,
        closed: bool = True,
        **component: Any,
    ) -> list[Component]:
        """Adds components ``name_0``, ``name_1``, ... in a ring, or a chain if ``closed`` is false.

        Each component sends on ``to_right`` (named after the second of ``sides``), and its right neighbour receives on
        ``from_left``. With ``both`` each component also sends on ``to_left``, and its left neighbour receives on
        ``from_right``. ``component``: further arguments of :meth:`component`.
        """
        cells = self.grid(name, (count,), implementation, sides=(sides,), periodic=closed, both=both, **component)
        return list(cells.values())

    def grid(
        self,
        name: str,
        shape: Sequence[int],
        implementation: str | Model | None = None,
        *,
        sides: Sequence[tuple[str, str]] = (("west", "east"), ("south", "north"), ("bottom", "top")),
        periodic: bool | Sequence[bool] = False,
        both: bool = True,
        **component: Any,
    ) -> dict[tuple[int, ...], Component]:
        """Adds components ``name_I_J`` in a grid of any dimension, each connected to its nearest neighbours.

        Along dimension ``d`` each component sends to the next component on ``to_<second of sides[d]>``, and the next
        component receives on ``from_<first of sides[d]>``; with ``both`` also the other way. Where a dimension is
        ``periodic`` the last component is the neighbour of the first. A component at a border has only the ports that
        are connected. Gives the components by index. ``component``: further arguments of :meth:`component`.
        """
        if len(shape) > len(sides):
            raise ValueError(f"{len(shape)} dimensions need as many pairs of sides; there are {len(sides)}")
        wraps = (periodic,) * len(shape) if isinstance(periodic, bool) else tuple(periodic)
        cells = {
            index: self.component("_".join([name, *map(str, index)]), implementation, **component)
            for index in product(*map(range, shape))
        }
        for index, cell in cells.items():
            for dimension, (size, wrap, (low, high)) in enumerate(zip(shape, wraps, sides)):
                if index[dimension] + 1 == size and not wrap:
                    continue
                following = (index[dimension] + 1) % size
                other = cells[(*index[:dimension], following, *index[dimension + 1 :])]
                self.connect(cell, f"to_{high}", other, f"from_{low}")
                if both:
                    self.connect(other, f"to_{low}", cell, f"from_{high}")
        return cells

    def network(
        self,
        name: str,
        edges: str | os.PathLike[str] | Edges,
        implementation: str | Model | None = None,
        *,
        both: bool = True,
        **component: Any,
    ) -> dict[str, Component]:
        """Adds a component ``name_NODE`` for each node of a network, connected along the network's edges.

        ``edges``: a file with a line per edge (see :func:`read_edges`), a GraphML or GML file (if networkx is
        installed), a networkx graph, or pairs of nodes. Along an edge from A to B, ``to_B`` of A is connected to
        ``from_A`` of B. With ``both`` an edge also leads back, unless the network has an edge from B to A. Attributes
        of nodes become settings of their component. Attributes of edges become settings of the sender:
        ``to_B_<attribute>``. Characters that cannot stand in a name become ``_``. Gives the components by node.
        ``component``: further arguments of :meth:`component`.
        """
        nodes, pairs = edges_of(edges, both)
        words = identifiers(nodes)
        cells = {node: self.component(f"{name}_{words[node]}", implementation, **component) for node in nodes}
        for node, attributes in nodes.items():
            keys = identifiers(attributes, whole=True)
            for key, value in attributes.items():
                self.settings[f"{cells[node].name}.{keys[key]}"] = value
        for (one, other), attributes in pairs.items():
            self.connect(cells[one], f"to_{words[other]}", cells[other], f"from_{words[one]}")
            keys = identifiers(attributes)
            for key, value in attributes.items():
                self.settings[f"{cells[one].name}.to_{words[other]}_{keys[key]}"] = value
        return cells

    def text(self) -> str:
        """The description as yMMSL v0.2."""
        return written(self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the description to a file. Relative paths in the description begin in the file's directory."""
        Path(path).write_text(self.text(), encoding="utf-8")


def _add_port(ports: dict[str, list[str]], operator: str, name: str) -> None:
    if operator not in OPERATORS:
        raise ValueError(f"{operator!r} is no operator: use one of {', '.join(OPERATORS)}")
    names = ports.setdefault(operator, [])
    if name not in names:
        names.append(name)
