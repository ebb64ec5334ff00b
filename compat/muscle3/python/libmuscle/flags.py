"""What an instance says of itself when it is made."""

from enum import Flag, auto


class InstanceFlags(Flag):
    """Properties of an instance; combine them by ``|``."""

    DONT_APPLY_OVERLAY = auto()
    """The settings overlay of an F_INIT message changes no setting. Use ``receive_with_settings`` to have it."""

    USES_CHECKPOINT_API = auto()
    """The program makes the calls for snapshots."""

    KEEPS_NO_STATE_FOR_NEXT_USE = auto()
    """A use needs nothing of the use before."""

    STATE_NOT_REQUIRED_FOR_NEXT_USE = auto()
    """A use can do without what the use before has left."""

    SKIP_MMSF_SEQUENCE_CHECKS = auto()
    """The order of sends and receives is not checked."""


DONT_APPLY_OVERLAY = InstanceFlags.DONT_APPLY_OVERLAY
USES_CHECKPOINT_API = InstanceFlags.USES_CHECKPOINT_API
KEEPS_NO_STATE_FOR_NEXT_USE = InstanceFlags.KEEPS_NO_STATE_FOR_NEXT_USE
STATE_NOT_REQUIRED_FOR_NEXT_USE = InstanceFlags.STATE_NOT_REQUIRED_FOR_NEXT_USE
SKIP_MMSF_SEQUENCE_CHECKS = InstanceFlags.SKIP_MMSF_SEQUENCE_CHECKS
