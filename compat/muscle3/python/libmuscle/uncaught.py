"""Tells the run of the exception that ends a program: programs for MUSCLE3 do not close their instances themselves."""

from __future__ import annotations

import sys
import weakref
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from libmuscle.instance import Instance

_open: weakref.WeakSet[Instance] = weakref.WeakSet()
_hook_before = sys.excepthook


def watch(instance: Instance) -> None:
    """From now on, an exception that nothing catches is what the run says of this instance."""
    global _hook_before
    if sys.excepthook is not _hook:
        _hook_before, sys.excepthook = sys.excepthook, _hook
    _open.add(instance)


def tell(raised: BaseException) -> None:
    """Ends all instances that are open, with this exception as the reason."""
    for instance in list(_open):
        instance._end_by(raised)


def _hook(kind: type[BaseException], raised: BaseException, frames: TracebackType | None) -> None:
    tell(raised)
    _hook_before(kind, raised, frames)
