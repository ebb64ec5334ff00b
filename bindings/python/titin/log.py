"""Python's logging, sent to the run's log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from titin import Instance


class LogHandler(logging.Handler):
    """Sends log records to the run's log, where they stand with the instance's name and simulated time.

    ``logging.getLogger().addHandler(titin.LogHandler(instance))`` does it for all loggers. Once the instance is closed
    records are dropped.
    """

    def __init__(self, instance: Instance, level: int | str = logging.NOTSET) -> None:
        super().__init__(level)
        self._instance = instance

    def emit(self, record: logging.LogRecord) -> None:
        if self._instance.closed:
            return
        try:
            self._instance.log(record.levelno, self.format(record))
        except Exception:
            self.handleError(record)
