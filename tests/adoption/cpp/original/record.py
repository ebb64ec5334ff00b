"""Writes down what a program got, with the exact bits of numbers. record.hpp writes the same."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from libmuscle import Grid, Message
from ymmsl.v0_2 import Settings


def entries(shown: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in sorted(shown.items())) + "}"


def show_grid(grid: Grid) -> str:
    array = grid.array
    order = "-" if array.ndim < 2 else "last" if array.flags.c_contiguous else "first"
    shape = "".join(f"{extent}," for extent in array.shape)
    names = "".join(f" {name}" for name in grid.indexes or [])
    elements = array.tobytes().hex()
    return f"grid {array.dtype.name} ({shape}) {order}{names} {elements}"


def show(value: Any) -> str:
    match value:
        case None:
            return "nil"
        case bool():
            return str(value).lower()
        case int():
            return f"int {value}"
        case float():
            return "real " + struct.pack("<d", value).hex()
        case str():
            return f"text {value}"
        case bytes():
            return f"bytes {value.hex()}"
        case Settings():
            return "settings " + entries({str(name): show(setting) for name, setting in value.items()})
        case dict():
            return entries({name: show(entry) for name, entry in value.items()})
        case list():
            return "[" + ", ".join(map(show, value)) + "]"
        case Grid():
            return show_grid(value)
        case np.ndarray():
            return show_grid(Grid(value))
        case Message():
            text = (
                f"{show(value.timestamp)} next {'none' if value.next_timestamp is None else show(value.next_timestamp)}"
            )
            text += "" if value.settings is None else f" {show(value.settings)}"
            return f"{text} {show(value.data)}"
    raise TypeError(f"{type(value)}")


def line(what: str, got: Any) -> None:
    print(f"{what}: {got if isinstance(got, str) else show(got)}", flush=True)


def refused(what: str, call: Callable[[], Any]) -> None:
    """Writes down the error of a call: ``missing``, ``type`` or ``error``."""
    try:
        call()
        line(what, "no error")
    except KeyError:
        line(what, "missing")
    except (TypeError, ValueError):  # ValueError comes for a setting that is no list of whole numbers
        line(what, "type")
    except Exception:
        line(what, "error")
