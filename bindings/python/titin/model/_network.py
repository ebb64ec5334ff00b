"""Networks: nodes and edges, from files, graphs or pairs."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

Attributes: TypeAlias = Mapping[str, Any]
Nodes: TypeAlias = dict[str, dict[str, Any]]
Edge: TypeAlias = tuple[str, str, dict[str, Any]]
Ways: TypeAlias = dict[tuple[str, str], dict[str, Any]]


@runtime_checkable
class Graph(Protocol):
    """A graph with networkx's methods."""

    def nodes(self, data: bool) -> Iterable[tuple[Any, Attributes]]: ...
    def edges(self, data: bool) -> Iterable[tuple[Any, Any, Attributes]]: ...


Edges: TypeAlias = Graph | Iterable[tuple[Any, ...]]


def read_edges(path: str | os.PathLike[str]) -> list[Edge]:
    """Edges from a text file with a line for each: source, target, and attributes.

    Words are separated by commas, semicolons, tabs or spaces; lines that begin with ``#`` are skipped. A first line
    that begins with ``source`` names the columns. Without such a line, a third column is ``weight``, and more columns
    are an error. A word that reads as a number becomes a number.
    """
    text = Path(path).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    separator = next((mark for mark in ",;\t" if lines and mark in lines[0]), None)
    rows = list(csv.reader(lines, delimiter=separator)) if separator else [line.split() for line in lines]
    names = ["weight"]
    if rows and rows[0][0].strip().lower() == "source":
        names = [name.strip() for name in rows.pop(0)[2:]]
    edges: list[Edge] = []
    for number, row in enumerate(rows, start=1):
        words = [word.strip() for word in row]
        if not 2 <= len(words) <= 2 + len(names):
            raise ValueError(f"{os.fspath(path)}: edge {number} has {len(words)} columns: {' '.join(words)}")
        edges.append((words[0], words[1], {name: _value(word) for name, word in zip(names, words[2:])}))
    return edges


def edges_of(edges: str | os.PathLike[str] | Edges, both: bool) -> tuple[Nodes, Ways]:
    """Nodes with their attributes, and directed edges with theirs, both in order.

    With ``both`` an edge also leads back, unless the network has an edge from its target to its source.
    """
    if isinstance(edges, str | os.PathLike):
        path = Path(edges)
        edges = _graph(path) if path.suffix.lower() in (".graphml", ".gml") else read_edges(path)
    nodes: Nodes = {}
    if isinstance(edges, Graph):
        # Default attributes of GraphML, for nodes and edges without a value of their own.
        known = getattr(edges, "graph", {})
        of_nodes, of_edges = known.get("node_default", {}), known.get("edge_default", {})
        nodes = {str(node): {**of_nodes, **attributes} for node, attributes in edges.nodes(data=True)}
        pairs = [(str(a), str(b), {**of_edges, **attributes}) for a, b, attributes in edges.edges(data=True)]
    else:
        pairs = [(str(edge[0]), str(edge[1]), dict(edge[2]) if len(edge) > 2 else {}) for edge in edges]
    there: Ways = {}
    for source, target, attributes in pairs:
        nodes.setdefault(source, {})
        nodes.setdefault(target, {})
        if (source, target) in there:
            raise ValueError(f"there are two edges from {source!r} to {target!r}; make one of them")
        there[source, target] = attributes
    ways: Ways = {}
    for (source, target), attributes in there.items():
        ways[source, target] = attributes
        if both and (target, source) not in there:
            ways[target, source] = attributes
    return nodes, ways


def identifiers(names: Iterable[str], whole: bool = False) -> dict[str, str]:
    """Part of an identifier for each name, or with ``whole`` a whole identifier. Two equal results are an error."""
    words: dict[str, str] = {}
    taken: dict[str, str] = {}
    for name in names:
        word = re.sub(r"\W", "_", name, flags=re.ASCII)
        if whole and word[:1].isdigit():
            word = f"_{word}"
        if word in taken:
            raise ValueError(f"{taken[word]!r} and {name!r} would both be called {word}; rename one")
        words[name] = word
        taken[word] = name
    return words


def _graph(path: Path) -> Graph:
    try:
        import networkx
    except ModuleNotFoundError as missing:
        text = f"{path} is read by networkx: pip install networkx, or give a text file with an edge per line"
        raise ModuleNotFoundError(text, name="networkx") from missing
    read = networkx.read_graphml if path.suffix.lower() == ".graphml" else networkx.read_gml
    graph: Graph = read(path)
    return graph


def _value(word: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
