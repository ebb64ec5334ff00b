"""The data of messages, from MUSCLE3's types to titin's and back.

Both have None, bool, int, float, str, bytes, lists, dicts and arrays. MUSCLE3 wraps a received array in a
:class:`libmuscle.Grid`, and has settings as a type of data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import titin

from libmuscle.grid import Grid

if TYPE_CHECKING:
    from ymmsl.v0_2 import Settings

#: Types that are the same in both.
PLAIN = frozenset([type(None), bool, int, float, str, bytes])
#: Types that titin sends as they are: those, and NumPy's array once there has been one.
SENT_UNCHANGED: set[type] = set(PLAIN)

#: The types of elements that MUSCLE3 sends, and the bytes that it cannot reach in one array.
_TYPES_OF_MUSCLE3 = ("int32", "int64", "float32", "float64", "bool")
_TOO_LONG = 1 << 32


def encode(data: Any) -> Any:
    """Data of a program as data for :meth:`titin.Instance.send`. Arrays are not copied."""
    kind = type(data)
    if kind in PLAIN:
        return data
    if isinstance(data, Grid):
        return _named(data)
    if isinstance(data, dict):
        return {key: value if type(value) in PLAIN else encode(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [value if type(value) in PLAIN else encode(value) for value in data]
    if hasattr(data, "as_ordered_dict"):
        return titin.Settings(settings_to_dict(data))
    if kind is memoryview:
        # Bytes on MUSCLE3; titin would send an array.
        return data.tobytes()
    _note_array(kind)
    return data


def decode(data: Any) -> Any:
    """The data of a :class:`titin.Message` as data for a program: arrays become grids, at any depth."""
    kind = type(data)
    if kind in SENT_UNCHANGED:
        return data if kind in PLAIN else Grid(data)
    if kind is dict:
        return {key: value if type(value) in PLAIN else decode(value) for key, value in data.items()}
    if kind is list:
        return [value if type(value) in PLAIN else decode(value) for value in data]
    if isinstance(data, dict):
        return settings_from_dict(data)
    names = getattr(data, "names", None)
    _note_array(kind)
    return Grid(data, None if names is None else list(names))


def settings_to_dict(settings: Any) -> dict[str, Any]:
    """Settings of the package ``ymmsl``, or a dict, as the dict that titin takes."""
    pairs = settings.as_ordered_dict() if hasattr(settings, "as_ordered_dict") else settings
    return {str(name): value for name, value in pairs.items()}


def settings_from_dict(settings: dict[str, Any]) -> Settings:
    """A settings overlay of titin as settings of the package ``ymmsl``."""
    from ymmsl.v0_2 import Settings

    return Settings(settings)


def refuse_what_muscle3_refuses(data: Any) -> None:
    """Raises RuntimeError for an array that MUSCLE3 cannot send: the check of ``muscle_strict_types``."""
    if isinstance(data, Grid):
        data = data.array
    if isinstance(data, dict):
        for value in data.values():
            refuse_what_muscle3_refuses(value)
    elif isinstance(data, list | tuple):
        for value in data:
            refuse_what_muscle3_refuses(value)
    elif hasattr(data, "dtype") and hasattr(data, "nbytes"):
        if str(data.dtype) not in _TYPES_OF_MUSCLE3:
            raise RuntimeError(
                f"Unsupported array data type {data.dtype}: MUSCLE3 sends {', '.join(_TYPES_OF_MUSCLE3)}, and the "
                "setting muscle_strict_types refuses others; convert the array, or take the setting away"
            )
        if data.nbytes >= _TOO_LONG:
            raise RuntimeError(
                f"An array of {data.nbytes} bytes is too long: MUSCLE3 sends less than 4 GiB, and the setting "
                "muscle_strict_types refuses more; send parts, or take the setting away"
            )


def _note_array(kind: type) -> None:
    """Remembers NumPy's array, without an import of NumPy, as a type that goes as it is. Derived types do not."""
    if (kind.__module__, kind.__name__) == ("numpy", "ndarray"):
        SENT_UNCHANGED.add(kind)


def _named(grid: Grid) -> Any:
    if grid.indexes is None:
        return grid.array
    return titin.Array(grid.array, names=grid.indexes)
