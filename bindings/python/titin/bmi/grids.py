"""The grids of a model: the shape of arrays, the names of their indices, and what messages tell of the grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from titin.bmi.model import Model

# Grids whose arrays have a dimension for each index.
_BOXES = {"uniform_rectilinear", "rectilinear", "structured_quadrilateral", "structured_quad"}
# The names of indices, as the Basic Model Interface orders them.
_AXES = ("z", "y", "x")
# As many as an array of NumPy may have.
_MOST_DIMENSIONS = 32


class Grid:
    """A grid of a model, as far as the model tells it."""

    def __init__(self, model: Model, number: int) -> None:
        self._model = model
        self.number = number
        self.kind = model.text("get_grid_type", number).lower()
        self.rank = 0
        # A model that has single numbers only need not tell a rank.
        if model.optional("get_grid_rank", number) is not None:
            self.rank = model.count("get_grid_rank", number)
            if self.rank > _MOST_DIMENSIONS:
                raise model.wrong("get_grid_rank", (number,), f"returned {self.rank}, which are too many dimensions")
        self.shape: tuple[int, ...] | None = None
        if self.kind in _BOXES and self.rank:
            told = self.filled("get_grid_shape", self.rank, np.int32)
            if told is None:
                raise model.wrong("get_grid_shape", (number,), f"is not there, and the grid is {self.kind}: write it")
            if not np.all(np.isfinite(told) & (told >= 0) & (told == np.floor(told))):
                raise model.wrong("get_grid_shape", (number,), f"returned {told.tolist()}, and not counts")
            self.shape = tuple(int(n) for n in told)

    def layout(self, name: str, count: int, location: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """The shape of the arrays of a variable with so many elements, and the names of the indices."""
        if self.kind == "scalar" or (self.rank == 0 and count == 1):
            if count != 1:
                raise self._model.wrong("get_var_nbytes", (name,), f"tells {count} values, and its grid is a scalar")
            return (), ()
        if self.shape is None or location not in ("", "node"):
            return (count,), (location or "node",)
        if math.prod(self.shape) != count:
            raise self._model.wrong(
                "get_var_nbytes",
                (name,),
                f"tells {count} values, and get_grid_shape({self.number}) returned "
                f"{' by '.join(map(str, self.shape))}, which are {math.prod(self.shape)}",
            )
        return self.shape, self.names(self.shape, location)

    def names(self, shape: tuple[int, ...], location: str) -> tuple[str, ...]:
        """The names of the indices of an array of this shape."""
        if self.shape is None or location not in ("", "node"):
            return (location or "node",)
        return _AXES[-len(shape) :] if len(shape) <= len(_AXES) else ()

    def told(self, whole: bool = True) -> dict[str, Any]:
        """The grid as messages tell it: numbers, lists and arrays by the names of ``docs/bmi.md``.

        Of a grid that several ranks share a rank has not the ``whole``: what depends on the part is left out.
        """
        told: dict[str, Any] = {"id": self.number, "type": self.kind, "rank": self.rank}
        size = self._count("get_grid_size")
        if size:
            told["size"] = size
        if self.shape is not None:
            told["shape"] = list(self.shape)
        if self.kind == "uniform_rectilinear":
            for key in ("spacing", "origin"):
                values = self.filled(f"get_grid_{key}", self.rank)
                if values is not None:
                    told[key] = values.tolist()
        elif whole and self.kind not in ("", "scalar", "none"):
            told |= self._points(size)
        if whole and self.kind == "unstructured":
            told |= self._faces()
        return told

    def _points(self, size: int) -> dict[str, NDArray[Any]]:
        """The coordinates of the nodes, or of the lines of a rectilinear grid."""
        nodes = self._count("get_grid_node_count") if self.kind == "unstructured" else 0
        points = {}
        for axis in range(self.rank):
            lines = self.shape[-1 - axis] if self.kind == "rectilinear" and self.shape else 0
            found = self.filled(f"get_grid_{'xyz'[axis]}", lines or nodes or size)
            if found is not None:
                points["xyz"[axis]] = found
        return points

    def _faces(self) -> dict[str, NDArray[Any]]:
        """Which nodes the edges and faces of an unstructured grid have."""
        told: dict[str, NDArray[Any] | None] = {}
        edges, faces = self._count("get_grid_edge_count"), self._count("get_grid_face_count")
        if edges:
            told["edge_nodes"] = self.filled("get_grid_edge_nodes", 2 * edges, np.int32)
        per_face = self.filled("get_grid_nodes_per_face", faces, np.int32) if faces else None
        if per_face is not None:
            if per_face.min(initial=0) < 0:
                raise self._model.wrong("get_grid_nodes_per_face", (self.number,), f"returned {per_face.min()}")
            told["nodes_per_face"] = per_face
            told["face_nodes"] = self.filled("get_grid_face_nodes", int(per_face.sum()), np.int32)
        return {key: values for key, values in told.items() if values is not None}

    def _count(self, method: str) -> int:
        """A count that the model need not tell."""
        count = self._model.optional(method, self.number)
        return int(count) if isinstance(count, int | np.integer) and count > 0 else 0

    def filled(self, method: str, count: int, kind: type[Any] = np.float64) -> NDArray[Any] | None:
        """What a method writes into an array of so many elements, or returns; None if the model does not have it."""
        buffer = np.zeros(count, kind)
        try:
            result = self._model.call(method, self.number, buffer)
        except NotImplementedError:
            return None
        try:
            found = np.asarray(buffer if result is None else result).reshape(-1)
        except ValueError:
            found = np.zeros(0, object)
        if found.size != count or found.dtype.kind not in "iuf":
            raise self._model.wrong(method, (self.number,), f"returned {result!r}, and not {count} numbers")
        return found
