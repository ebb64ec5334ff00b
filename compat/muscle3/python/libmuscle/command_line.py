"""Which instance this process is, and of which run: its command line, else its environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def option(name: str) -> str | None:
    """The value of ``--muscle-NAME=value`` on the command line, which has options of the program's own beside it."""
    prefix = f"--muscle-{name}="
    return next((word[len(prefix) :] for word in sys.argv[1:] if word.startswith(prefix)), None)


def instance_name() -> str:
    """The name of this instance. Raises RuntimeError if nothing says it."""
    name = option("instance") or os.environ.get("MUSCLE_INSTANCE") or os.environ.get("TITIN_INSTANCE")
    if not name:
        raise RuntimeError(
            "A --muscle-instance command line argument or MUSCLE_INSTANCE environment variable is required to "
            "identify this instance: start the model by `muscle_manager --start-all`, or give "
            "--muscle-instance=NAME, where NAME is a component of the yMMSL file, such as micro or micro[3]"
        )
    return name


def manager_location() -> str:
    """Where titin's manager is: the path of its connection file, or tcp:host:port with a secret beside.

    Raises RuntimeError if nothing says it, or if it is a manager of MUSCLE3's.
    """
    location = option("manager") or os.environ.get("MUSCLE_MANAGER") or os.environ.get("TITIN_MANAGER")
    if not location:
        raise RuntimeError(
            "No manager is known: start the model by titin's `muscle_manager`, and give --muscle-manager=LOCATION or "
            "the environment variable MUSCLE_MANAGER with the line that it prints"
        )
    if location.startswith("tcp:") and "TITIN_SECRET" not in os.environ:
        raise RuntimeError(
            f"{location} is a MUSCLE3 manager, and this program runs on titin: start the model by titin's "
            "`muscle_manager`, or install muscle3 in place of titin-muscle3"
        )
    return location


def log_file(instance: str) -> Path | None:
    """The file of ``--muscle-log-file=``; within a folder that is given, a file named after the instance."""
    given = option("log-file")
    if not given:
        return None
    path = Path(given)
    return path / f"muscle3.{instance}.log" if path.is_dir() else path
