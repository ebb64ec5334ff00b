"""What programs send and receive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ymmsl.v0_2 import Settings


class Message:
    """Data with a simulated time.

    ``timestamp``: the simulated time of the data. ``next_timestamp``: the simulated time of the next message on the
    port, None if there is none or it is not known. ``data``: see ``docs/muscle3.md``. ``settings``: the settings
    overlay; None in a message to send stands for the overlay in force.
    """

    def __init__(
        self,
        timestamp: float,
        next_timestamp: float | None = None,
        data: Any = None,
        settings: Settings | None = None,
    ) -> None:
        self.timestamp = timestamp if type(timestamp) is float else float(timestamp)
        self.next_timestamp = None if next_timestamp is None else float(next_timestamp)
        self.data = data
        self.settings = settings
