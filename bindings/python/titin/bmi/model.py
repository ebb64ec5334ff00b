"""A model behind the Basic Model Interface: found by its name, and called with every answer looked at once."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import math
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from titin.errors import Error

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

# Names of types that NumPy does not know, or knows as others than C and Fortran do. None: by the size of an element.
_TYPES: dict[str, str | None] = {
    "double": "f8",
    "double precision": "f8",
    "real": None,
    "real*4": "f4",
    "real*8": "f8",
    "real(4)": "f4",
    "real(8)": "f8",
    "real(kind=4)": "f4",
    "real(kind=8)": "f8",
    "float": None,
    "int": None,
    "integer": None,
    "integer*4": "i4",
    "integer*8": "i8",
    "long": "i8",
    "long int": "i8",
    "long long": "i8",
    "short": "i2",
    "char": "i1",
    "signed char": "i1",
    "unsigned char": "u1",
    "unsigned short": "u2",
    "unsigned": "u4",
    "unsigned int": "u4",
    "unsigned long": "u8",
    "unsigned long long": "u8",
    "logical": None,
}
_KINDS = {"real": "f", "float": "f", "int": "i", "integer": "i", "logical": "i"}


class ModelError(Error):
    """A model does not do what the Basic Model Interface asks for, or does not fit the description."""


def load(name: str) -> Callable[[], Any]:
    """What makes a model: the class ``package.module:Class`` or ``file.py:Class``, or a library (:mod:`library`).

    Raises :class:`ModelError` where nothing of this name is found, with the places that were tried.
    """
    where, _, attribute = name.partition(":")
    if where.endswith((".so", ".dylib", ".dll")) or ".so." in where:
        from titin.bmi import library

        return library.load(where, attribute)
    if not attribute:
        raise ModelError(f"'{name}' names no model: write package.module:Class, file.py:Class, or libmodel.so")
    return _class(_module(where, name), attribute, name)


class Model:
    """A model of one use. Every answer is looked at here, and each error says which call has failed.

    An exception of the model's own passes, with a note that names the call and the simulated time.
    """

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self._model = model
        self._buffers: dict[str, NDArray[Any]] = {}
        self._without_pointer: set[str] = set()

    def __repr__(self) -> str:
        return self.name

    def call(self, method: str, *arguments: Any, lacking: str = "") -> Any:
        """What a method returns. ``lacking`` is what to do about a method that the model does not have."""
        function = getattr(self._model, method, None)
        try:
            if function is None:
                raise NotImplementedError(f"it has no {method}")
            return function(*arguments)
        except NotImplementedError as missing:
            if lacking:
                raise ModelError(f"{self.name} has no {_called(method, arguments)} ({missing}): {lacking}") from missing
            raise
        except Exception as raised:
            raised.add_note(f"titin.bmi: in {_called(method, arguments)} of {self.name}{self._moment(method)}")
            raise

    def has(self, method: str) -> bool:
        """Whether the model has this method, implemented or not."""
        return getattr(self._model, method, None) is not None

    def optional(self, method: str, *arguments: Any) -> Any:
        """What a method returns; None if the model does not implement the method."""
        try:
            return self.call(method, *arguments)
        except NotImplementedError:
            return None

    def text(self, method: str, *arguments: Any) -> str:
        """A text; empty if the model does not implement the method."""
        found = self.optional(method, *arguments)
        if found is None:
            return ""
        if not isinstance(found, str):
            raise self.wrong(method, arguments, f"returned {found!r}, and not a text")
        return found.strip()

    def number(self, method: str, *arguments: Any, lacking: str = "write it") -> float:
        """A finite number, of a method that the model has to have."""
        found = self.call(method, *arguments, lacking=lacking)
        if isinstance(found, bool) or not isinstance(found, int | float | np.number) or math.isnan(float(found)):
            raise self.wrong(method, arguments, f"returned {found!r}, and not a number")
        return float(found)

    def count(self, method: str, *arguments: Any) -> int:
        """A whole number from 0, of a method that the model has to have."""
        found = self.number(method, *arguments)
        if found < 0 or found != int(found):
            raise self.wrong(method, arguments, f"returned {found!r}, and not a count")
        return int(found)

    def names(self, method: str) -> tuple[str, ...]:
        """The names of the input or the output variables."""
        found = self.call(method, lacking="write it")
        if isinstance(found, str) or not all(isinstance(name, str) for name in found):
            raise self.wrong(method, (), f"returned {found!r}, and not names: return a tuple of texts")
        return tuple(found)

    def kind(self, name: str) -> np.dtype[Any]:
        """The type of the elements of a variable."""
        told = self.call("get_var_type", name, lacking="write it")
        size = self.count("get_var_itemsize", name)
        word = " ".join(str(told).lower().split()) if isinstance(told, str) else told
        try:
            kind = np.dtype(_TYPES[word] or f"{_KINDS[word]}{size}") if word in _TYPES else np.dtype(told)
        except TypeError:
            kind = np.dtype(object)
        if kind.kind not in "biufc":
            raise self.wrong("get_var_type", (name,), f"returned {told!r}, which names no type of numbers")
        if kind.itemsize != size:
            raise self.wrong("get_var_itemsize", (name,), f"returned {size}, and '{told}' has {kind.itemsize} bytes")
        return kind

    def pointer(self, name: str) -> NDArray[Any] | None:
        """The model's own memory of a variable; None if the model gives none."""
        if name in self._without_pointer:
            return None
        found = self.optional("get_value_ptr", name)
        if isinstance(found, np.ndarray):
            return found
        if found is not None:
            raise self.wrong("get_value_ptr", (name,), f"returned {type(found).__name__}, and not an array of NumPy")
        self._without_pointer.add(name)
        return None

    def values(self, name: str, kind: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """The values of a variable: the model's own memory, or else memory that is used again for each call."""
        method, found = "get_value_ptr", self.pointer(name)
        if found is None:
            method = "get_value"
            buffer = self._buffers.get(name)
            if buffer is None:
                buffer = self._buffers[name] = np.empty(math.prod(shape), kind)
            result = self.call(method, name, buffer, lacking="write it, or get_value_ptr")
            found = result if isinstance(result, np.ndarray) else buffer
        self.fits(found, method, name, kind, shape)
        return found.reshape(shape)

    def fits(self, found: NDArray[Any], method: str, name: str, kind: np.dtype[Any], shape: tuple[int, ...]) -> None:
        """Raises :class:`ModelError` for an array of another type or size than the model has told."""
        if found.dtype != kind:
            raise self.wrong(method, (name,), f"returned {found.dtype}, and get_var_type tells {kind}")
        if found.size != math.prod(shape):
            raise self.wrong(
                method, (name,), f"returned {found.size} values of shape {found.shape}, and the grid has {_by(shape)}"
            )

    def set(self, name: str, values: NDArray[Any]) -> None:
        """Gives values to the model, as an array of one dimension in C order."""
        self.call("set_value", name, values.reshape(-1), lacking="write it, or connect no input variables")

    def wrong(self, method: str, arguments: tuple[Any, ...], what: str) -> ModelError:
        """The error of an answer that cannot be used."""
        return ModelError(f"{_called(method, arguments)} of {self.name} {what}")

    def _moment(self, method: str) -> str:
        """The simulated time, for an error."""
        if method in ("initialize", "get_current_time", "get_time_units"):
            return ""
        try:
            return f", at time {self._model.get_current_time()} {self._model.get_time_units()}"
        except Exception:
            return ""


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
                f"{getattr(module, '__file__', module.__name__)} has no {attribute}, for {name}: {_meant(word, known)}"
            )
        found = getattr(found, word)
    if not callable(found):
        raise ModelError(f"{name} is {type(found).__name__}, and not a class with the Basic Model Interface")
    if inspect.isclass(found):
        missing = [method for method in NEEDED if not callable(getattr(found, method, None))]
        missing += sorted(set(getattr(found, "__abstractmethods__", ())) - set(missing))
        if missing:
            raise ModelError(
                f"{name} lacks {_list(missing)}: a class with the Basic Model Interface 2.0 has them; those that the "
                "model has no answer for may raise NotImplementedError"
            )
    return found  # type: ignore[no-any-return]


def near(name: str, known: list[str] | tuple[str, ...]) -> str:
    """The names that may be meant, for the end of a sentence."""
    found = get_close_matches(name, known, 3, 0.5)
    return f"; {_list(found, 'or')} may be meant" if found else ""


def _meant(word: str, known: list[str]) -> str:
    found = get_close_matches(word, known, 3, 0.5)
    if found:
        return f"{_list(found, 'or')} may be meant"
    return f"it has {_list(known)}" if known else "it has no classes"


def _list(words: list[str], last: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _called(method: str, arguments: tuple[Any, ...]) -> str:
    """A call as in the text of an error; arrays are left out."""
    return f"{method}({', '.join(repr(a) for a in arguments if not isinstance(a, np.ndarray))})"


def _by(shape: tuple[int, ...]) -> str:
    return " by ".join(map(str, shape)) if shape else "one"
