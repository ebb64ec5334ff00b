"""What goes in messages: an array, with its unit and grid beside it.

A message of titin has no place for units and grids beside its data. So the data are a map: ``data`` has the array,
``units`` the unit, and the first message of a use by each port ``grid`` the grid. This is the only module that knows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from titin.bmi.model import ModelError


def wrap(array: NDArray[Any], about: dict[str, Any]) -> Any:
    """The data of a message: the array, and what is told about it."""
    return {"data": array, **about}


def unwrap(data: Any, port: str) -> tuple[NDArray[Any] | None, str]:
    """The array of a message, None for nil, and its unit, "" if none is told. Raises :class:`ModelError`."""
    units = ""
    if isinstance(data, dict):
        if "data" not in data:
            raise ModelError(
                f"on port {port} came a map with {', '.join(sorted(map(str, data))[:5]) or 'nothing in it'}: an array, "
                "a number, or a map with the array under 'data' is needed"
            )
        if not isinstance(data.get("units", ""), str):
            raise ModelError(f"on port {port} came the unit {data['units']!r}: a text is needed")
        units, data = data.get("units", ""), data["data"]
    if data is None:
        return None, units
    try:
        array = np.asarray(data)
    except ValueError:
        array = np.zeros(0, object)
    if array.dtype.kind not in "biufc":
        raise ModelError(f"on port {port} came {type(data).__name__}, and no numbers: an array or a number is needed")
    return array, units
