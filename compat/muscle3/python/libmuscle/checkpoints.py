"""The calls for snapshots, and the order that MUSCLE3 asks for.

Titin takes no snapshots: an instance never resumes, and nothing is ever to be saved.
"""

from __future__ import annotations

from enum import Enum
from typing import NoReturn


class _Place(Enum):
    """Where in its reuse loop the program is; the value begins the text about a call that has no place there."""

    BEFORE = "Please only call {} inside the reuse loop"
    BEGIN = "Inside the reuse loop you must call resuming first, and {} after"
    INIT = "After calling resuming, you must call should_init first, and {} after"
    WITHIN = "You must call should_{0} first, and {0} if it returns True; titin takes no snapshots, so it returns False"
    DONE = "Please do not call {} after should_save_final_snapshot, which comes last in the reuse loop"


class Checkpoints:
    """The order of the calls. ``used``: whether the program has the flag ``USES_CHECKPOINT_API``."""

    def __init__(self, used: bool) -> None:
        self._used = used
        self._place = _Place.BEFORE

    def reuse(self) -> None:
        """Raises RuntimeError if the last use has not asked for its final snapshot."""
        if self._used and self._place not in (_Place.BEFORE, _Place.DONE):
            raise RuntimeError(
                "We reached the end of the reuse loop without checking if a snapshot should be saved. Please call "
                "resuming, should_init and should_save_final_snapshot in each use, or leave the flag "
                "USES_CHECKPOINT_API away"
            )

    def reused(self, again: bool) -> None:
        """A use has begun, or there is none any more."""
        self._place = _Place.BEGIN if again else _Place.BEFORE

    def resuming(self) -> bool:
        if not self._used:
            raise RuntimeError(
                "Please add the flag InstanceFlags.USES_CHECKPOINT_API to your instance to use the MUSCLE3 "
                "checkpointing API."
            )
        if self._place is not _Place.BEGIN:
            raise RuntimeError("Please call resuming() only as the first thing in the reuse loop.")
        self._place = _Place.INIT
        return False

    def should_init(self) -> bool:
        if self._place is not _Place.INIT:
            raise RuntimeError("Please check whether to run f_init using should_init() after resuming().")
        self._place = _Place.WITHIN
        return True

    def load(self) -> NoReturn:
        raise RuntimeError(
            "Please check that we are resuming by calling resuming() before calling load_snapshot(): it returns False, "
            "as titin takes no snapshots"
        )

    def should_save(self) -> bool:
        self._need_within("should_save_snapshot")
        return False

    def should_save_final(self) -> bool:
        self._need_within("should_save_final_snapshot")
        self._place = _Place.DONE
        return False

    def save(self, name: str) -> NoReturn:
        """Refuses to save, as nothing ever is to be saved. ``name``: that of the call."""
        raise RuntimeError(self._place.value.format(name))

    def _need_within(self, name: str) -> None:
        if self._place is not _Place.WITHIN:
            raise RuntimeError(f"{self._place.value.format(name)}.")
