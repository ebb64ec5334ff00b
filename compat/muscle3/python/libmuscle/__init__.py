"""MUSCLE3's Python library, over titin: a program that imports ``libmuscle`` runs on titin as it is.

``docs/muscle3.md`` has every public call, and what differs from MUSCLE3.
"""

from __future__ import annotations

from libmuscle.environment import refuse_muscle3

refuse_muscle3()

from typing import TYPE_CHECKING, Any  # noqa: E402

from libmuscle.flags import (  # noqa: E402
    DONT_APPLY_OVERLAY,
    KEEPS_NO_STATE_FOR_NEXT_USE,
    SKIP_MMSF_SEQUENCE_CHECKS,
    STATE_NOT_REQUIRED_FOR_NEXT_USE,
    USES_CHECKPOINT_API,
    InstanceFlags,
)
from libmuscle.grid import Grid  # noqa: E402
from libmuscle.instance import Instance  # noqa: E402
from libmuscle.message import Message  # noqa: E402
from libmuscle.version import __version__  # noqa: E402

if TYPE_CHECKING:
    from libmuscle import runner
    from libmuscle.profile_database import ProfileDatabase

__all__ = [
    "DONT_APPLY_OVERLAY",
    "KEEPS_NO_STATE_FOR_NEXT_USE",
    "SKIP_MMSF_SEQUENCE_CHECKS",
    "STATE_NOT_REQUIRED_FOR_NEXT_USE",
    "USES_CHECKPOINT_API",
    "Grid",
    "Instance",
    "InstanceFlags",
    "Message",
    "ProfileDatabase",
    "__version__",
    "runner",
]


def __getattr__(name: str) -> Any:
    """Imports what few programs use at its first use."""
    if name == "runner":
        from importlib import import_module

        return import_module("libmuscle.runner")
    if name == "ProfileDatabase":
        from libmuscle.profile_database import ProfileDatabase

        return ProfileDatabase
    raise AttributeError(f"module 'libmuscle' has no attribute {name!r}")
