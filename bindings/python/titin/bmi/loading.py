"""A model is found by its name, as a class in Python or as a library."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from titin.bmi import library
from titin.bmi.model import ModelError, listed, near

# What a class must have. Grids, pointers and fractions of steps are asked for where they are needed.
NEEDED = (
    "initialize",
    "finalize",
    "get_component_name",
    "get_input_var_names",
    "get_output_var_names",
    "get_var_type",
    "get_var_units",
    "get_var_itemsize",
    "get_var_nbytes",
    "get_var_grid",
    "get_current_time",
    "get_start_time",
    "get_end_time",
    "get_time_units",
    "get_value",
    "set_value",
)


def make(name: str) -> Any:
    """A new model. Raises as :func:`load`, and what the model's constructor raises."""
    maker = load(name)
    try:
        return maker()
    except Exception as raised:
        raised.add_note(f"titin.bmi: in making {name} (without arguments)")
        raise


@cache
def load(name: str) -> Callable[[], Any]:
    """What makes a model: the class ``package.module:Class`` or ``file.py:Class``, or a library (:mod:`library`).

    Raises :class:`ModelError` where nothing of this name is found, with the places that were tried.
    """
    where, _, attribute = name.partition(":")
    if where.endswith((".so", ".dylib", ".dll")) or ".so." in where:
        return library.load(where, attribute)
    if not attribute:
        raise ModelError(f"'{name}' names no model: write package.module:Class, file.py:Class, or libmodel.so")
    return _class(_module(where, name), attribute, name)


def _module(where: str, name: str) -> ModuleType:
    """The module of a class."""
    if where.endswith(".py"):
        path = Path(where)
        if not path.is_file():
            raise ModelError(f"there is no file {path.absolute()}, where {name} should be: write an absolute path")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)
        sys.path.insert(0, str(path.absolute().parent))
        spec.loader.exec_module(module)
        return module
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError as missing:
        # A module of this name that lacks another one says so itself.
        if missing.name is None or not f"{where}.".startswith(f"{missing.name}."):
            raise
        tried = "".join(f"\n  {folder or Path.cwd()}" for folder in sys.path)
        raise ModelError(
            f"there is no module {missing.name}, for {name}: install it here, put its folder into PYTHONPATH (env of "
            f"the program in the description), or write /path/of/file.py:Class. Python has looked in:{tried}"
        ) from None


def _class(module: ModuleType, attribute: str, name: str) -> Callable[[], Any]:
    """What makes models: a class, or a function without arguments."""
    found: Any = module
    for word in attribute.split("."):
        if not hasattr(found, word):
            known = [key for key, value in vars(found).items() if inspect.isclass(value)]
            raise ModelError(
                f"{getattr(module, '__file__', module.__name__)} has no {attribute}, for {name}: it has "
                f"{listed(known) if known else 'no classes'}{near(word, known)}"
            )
        found = getattr(found, word)
    if not callable(found):
        raise ModelError(f"{name} is {type(found).__name__}, and not a class with the Basic Model Interface")
    if inspect.isclass(found):
        missing = [method for method in NEEDED if not callable(getattr(found, method, None))]
        missing += sorted(set(getattr(found, "__abstractmethods__", ())) - set(missing))
        if missing:
            raise ModelError(
                f"{name} lacks {listed(missing)}: a class with the Basic Model Interface 2.0 has them; those that the "
                "model has no answer for may raise NotImplementedError"
            )
    return found  # type: ignore[no-any-return]
