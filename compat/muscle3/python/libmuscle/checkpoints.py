"""The calls for snapshots, and the order that MUSCLE3 asks for.

Titin takes no snapshots: an instance never resumes, and nothing is ever to be saved.
"""

from __future__ import annotations

from enum import Enum, auto


class _Place(Enum):
    """Where in its reuse loop the program is."""

    OUTSIDE = auto()
    AT_BEGIN = auto()
    RESUMING_ASKED = auto()
    WITHIN = auto()


class Checkpoints:
    """The order of the calls. ``used``: whether the program has the flag ``USES_CHECKPOINT_API``."""

    def __init__(self, used: bool) -> None:
        self._used = used
        self._place = _Place.OUTSIDE

    def reuse(self) -> None:
        """Raises RuntimeError if the last use has not asked for its final snapshot."""
        if self._used and self._place is not _Place.OUTSIDE:
            raise RuntimeError(
                "We reached the end of the reuse loop without checking if a snapshot should be saved: call at least "
                "resuming, should_init and should_save_final_snapshot in each use, or leave the flag "
                "USES_CHECKPOINT_API away"
            )

    def reused(self) -> None:
        self._place = _Place.AT_BEGIN

    def resuming(self) -> bool:
        self._need(_Place.AT_BEGIN, "Please call resuming() only as the first thing in the reuse loop")
        self._place = _Place.RESUMING_ASKED
        return False

    def should_init(self) -> bool:
        self._need(_Place.RESUMING_ASKED, "Please check whether to run f_init using should_init() after resuming()")
        self._place = _Place.WITHIN
        return True

    def load(self) -> RuntimeError:
        """The error of a call that needs a snapshot to load."""
        return RuntimeError(
            "Please check that we are resuming by calling resuming() before calling load_snapshot(): resuming() is "
            "False, as titin takes no snapshots"
        )

    def should_save(self) -> bool:
        self._need(_Place.WITHIN, "Please call should_init() before should_save_snapshot()")
        return False

    def should_save_final(self) -> bool:
        self._need(_Place.WITHIN, "Please call should_init() before should_save_final_snapshot()")
        self._place = _Place.OUTSIDE
        return False

    def save(self, name: str) -> RuntimeError:
        """The error of a call that saves although nothing is to be saved."""
        return RuntimeError(
            f"Please check that a snapshot should be saved by calling should_{name}() before calling {name}(): it "
            "returns False, as titin takes no snapshots"
        )

    def _need(self, place: _Place, text: str) -> None:
        if not self._used:
            raise RuntimeError(
                "Please add the flag InstanceFlags.USES_CHECKPOINT_API to your instance to use the MUSCLE3 "
                "checkpointing API."
            )
        if self._place is not place:
            raise RuntimeError(f"{text}.")
