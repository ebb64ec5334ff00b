"""Python's logging, sent to the run's log."""

from __future__ import annotations

import logging
import os
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from titin import Instance


class LogHandler(logging.Handler):
    """Sends log records to the run's log, with the instance's name and simulated time.

    ``logging.getLogger().addHandler(titin.LogHandler(instance))`` serves all loggers. Once the instance is closed
    records are dropped. A forked child (``multiprocessing``) has no part in the run: the handler drops its records too,
    and warns once. A child hands its records to the parent by ``logging.handlers.QueueHandler``.
    """

    def __init__(self, instance: Instance, level: int | str = logging.NOTSET) -> None:
        super().__init__(level)
        self._instance = instance
        self._process = os.getpid()

    def emit(self, record: logging.LogRecord) -> None:
        if self._instance.closed:
            return
        try:
            if os.getpid() == self._process:
                self._instance.log(record.levelno, self.format(record))
            elif self._process:
                self._process = 0
                text = (
                    f"log records of this process go nowhere: {self._instance.name} belongs to the process that it was "
                    "forked from; hand them to that by logging.handlers.QueueHandler"
                )
                warnings.warn(text, RuntimeWarning, stacklevel=2)
        except Exception:
            self.handleError(record)
