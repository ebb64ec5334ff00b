"""titin couples simulation codes.

A submodel opens an :class:`Instance` and sends and receives on its ports in the order of the submodel execution loop::

    import titin

    with titin.Instance(f_init=["initial_state"], o_f=["final_state"]) as instance:
        while instance.reuse():                                 # once per use by a coarser scale
            k = instance.setting("k", float)
            message = instance.receive("initial_state")         # F_INIT
            u = message.data.copy()
            u += k * u                                          # S
            instance.send("final_state", u, timestamp=message.timestamp)  # O_F

``titin run model.ymmsl`` starts the programs; :func:`run` runs Python functions in this process; :mod:`titin.model`
builds descriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from titin._core import Field, Instance, Message, Port, Region, __version__, convert
from titin.errors import (
    CallOrderError,
    Closed,
    ConnectionFailed,
    Deadlock,
    Error,
    Evicted,
    FilterError,
    Forked,
    InternalError,
    MemberFailed,
    MessageLost,
    OutOfMemory,
    PeerLost,
    PortClosed,
    SettingError,
    Timeout,
    TypeMismatch,
    UsageError,
)

if TYPE_CHECKING:
    from titin.data import Array, Scale, Settings
    from titin.fields import Boxes, Grid, Indices, Owner, Stamps
    from titin.hosting import run
    from titin.log import LogHandler
    from titin.submodel import Submodel

__all__ = [
    "Array",
    "Boxes",
    "CallOrderError",
    "Closed",
    "ConnectionFailed",
    "Deadlock",
    "Error",
    "Evicted",
    "Field",
    "FilterError",
    "Forked",
    "Grid",
    "Indices",
    "Instance",
    "InternalError",
    "LogHandler",
    "MemberFailed",
    "Message",
    "MessageLost",
    "OutOfMemory",
    "Owner",
    "PeerLost",
    "Port",
    "PortClosed",
    "Region",
    "Scale",
    "SettingError",
    "Settings",
    "Stamps",
    "Submodel",
    "Timeout",
    "TypeMismatch",
    "UsageError",
    "__version__",
    "convert",
    "run",
]

# Modules that are imported at first use: `import titin` loads neither NumPy nor any other module that a program may
# never need.
_LATER = {
    "Array": "data",
    "Boxes": "fields",
    "Grid": "fields",
    "Indices": "fields",
    "LogHandler": "log",
    "Owner": "fields",
    "Scale": "data",
    "Settings": "data",
    "Stamps": "fields",
    "Submodel": "submodel",
    "run": "hosting",
}


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'titin' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"titin.{_LATER[name]}"), name)
    globals()[name] = value
    return value
