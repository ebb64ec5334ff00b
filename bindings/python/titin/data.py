"""Data beside plain arrays: arrays with index names, settings, and the scales of a component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Array(np.ndarray[Any, Any]):
    """An array with a name for each index. The names go with the array in a message.

    ``Array(data, names=("x", "y"))`` is a view of ``data``, here an array of rank 2, and can be used like an array.
    Only this object has the names: slices, copies and results of arithmetic have none (``names`` is None). The ``data``
    of a message is an ``Array`` if the sender gave names, else a plain ``numpy.ndarray``.
    """

    names: tuple[str, ...] | None

    def __new__(cls, data: ArrayLike, names: Sequence[str] | None = None) -> Array:
        array = cast(Array, np.asarray(data).view(cls))
        if names is not None:
            names = tuple(names)
            if len(names) != array.ndim:
                raise ValueError(f"{len(names)} index names for an array of rank {array.ndim}")
        array.names = names
        return array

    def __array_finalize__(self, source: NDArray[Any] | None) -> None:
        self.names = None


class Settings(dict[str, Any]):
    """Settings as data: a dict from names of settings to values, with a mark that goes along in a message.

    The receiver gets a ``Settings`` again, in C, C++ and Fortran a map that is marked. Files have
    ``{"$settings": {...}}``. The port ``muscle_settings_in`` takes marked and plain dicts. Otherwise it is a dict like
    any other; a copy by ``dict(...)`` has no mark.
    """

    def __repr__(self) -> str:
        return f"Settings({dict.__repr__(self)})"


@dataclass(frozen=True)
class Scale:
    """The scales of a component in the description; None or empty where the description has none."""

    dt: float | None = None
    """Timestep, in seconds."""
    total: float | None = None
    """Simulated time, in seconds."""
    dx: tuple[float, ...] = ()
    """Spacing per dimension, in metres."""
    extent: tuple[float, ...] = ()
    """Size per dimension, in metres."""


def scale(known: Mapping[str, Any]) -> Scale:
    """The scales as the library gives them, as a :class:`Scale`."""
    return Scale(
        dt=known.get("dt"),
        total=known.get("total"),
        dx=tuple(known.get("dx", ())),
        extent=tuple(known.get("extent", ())),
    )
