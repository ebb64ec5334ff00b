"""Python's logging, into the run's log and the file that the command line names, at the levels that settings say."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from libmuscle import command_line
from libmuscle.settings import look_up

if TYPE_CHECKING:
    import titin

logger = logging.getLogger("libmuscle")

#: The loggers of MUSCLE3's own packages.
_OWN = ("libmuscle", "ymmsl")

_LEVELS = {
    "DISABLE": logging.CRITICAL + 50,
    "CRITICAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARNING": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
}


def set_up(instance: titin.Instance, settings: Mapping[str, Any]) -> logging.Handler:
    """Sends records of all loggers to the run's log, from ``muscle_remote_log_level`` up, by default WARNING.

    ``muscle_local_log_level`` is the level of the loggers ``libmuscle`` and ``ymmsl``, whose records also go to the
    file of ``--muscle-log-file``.
    """
    from titin import LogHandler

    file = command_line.log_file(instance.name)
    if file is not None:
        to_file = logging.FileHandler(file, mode="w")
        to_file.setFormatter(logging.Formatter("%(asctime)-15s: %(levelname)-7s %(name)s: %(message)s"))
        for name in _OWN:
            logging.getLogger(name).addHandler(to_file)

    handler = LogHandler(instance, logging.WARNING)
    root = logging.getLogger()
    root.addHandler(handler)

    local = _level(settings, instance.name, "muscle_local_log_level", {**_LEVELS, "LOCAL": logging.DEBUG})
    if local is not None:
        for name in _OWN:
            logging.getLogger(name).setLevel(local)
    remote = _level(settings, instance.name, "muscle_remote_log_level", _LEVELS)
    if remote is not None:
        handler.setLevel(remote)
        if not root.isEnabledFor(remote):
            root.setLevel(remote)
    return handler


def take_down(handler: logging.Handler) -> None:
    """Ends what :func:`set_up` has begun: the instance is about to close."""
    logging.getLogger().removeHandler(handler)


def _level(settings: Mapping[str, Any], instance: str, name: str, levels: Mapping[str, int]) -> int | None:
    try:
        word = look_up(settings, instance, name, "str")
    except KeyError:
        return None
    level = levels.get(str(word).upper())
    if level is None:
        logger.warning("%s is set to %s, which is not a level. Use one of %s", name, word, ", ".join(levels))
    return level
