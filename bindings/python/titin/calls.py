"""The arguments that a user's function asks for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def needed(function: Callable[..., Any]) -> int:
    """How many arguments a function must be given by position; 1 for foreign code, which has no readable signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in by_position and parameter.default is parameter.empty for parameter in parameters)
