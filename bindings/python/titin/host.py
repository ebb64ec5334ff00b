"""The process of hosted instances in Python, which ``titin run`` starts as ``python -m titin.host``."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from titin import _core
from titin.errors import last_lines
from titin.hosting import _HostedFunctions, _refuse, _runs_when_called


def main(file: str) -> int:
    """Runs the functions that a file names; returns the exit code."""
    known = json.loads(Path(file).read_text())
    sys.path[:0] = known["folders"]
    functions: dict[str, Callable[..., Any]] = {}
    found: dict[str, Callable[..., Any]] = {}
    for guest in known["guests"]:
        name, written = guest["instance"], guest["function"]
        if written not in found:
            try:
                found[written] = _found(written)
                _runs_when_called(name, found[written])
            except Exception as error:
                # The run fails with the reason, and with the frames that are in the user's code.
                text = last_lines(error)
                print(text, file=sys.stderr)
                _core.place(name, os.environ["TITIN_MANAGER"])
                _refuse(f"its function {written} cannot be run: {text}")
                return 1
        functions[name] = found[written]
    hosted = _HostedFunctions(functions)
    instances = [{"name": name, "component": name} for name in functions]
    hosted.begin(json.dumps({"instances": instances, "manager": os.environ["TITIN_MANAGER"]}))
    hosted.join()
    for raised in hosted.raised.values():
        traceback.print_exception(raised)
        return 1
    return 0


def _found(written: str) -> Callable[..., Any]:
    """The function that ``module:function`` names."""
    module, _, path = written.partition(":")
    function: Any = import_module(module)
    for name in path.split("."):
        function = getattr(function, name)
    return function  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
