"""A model behind the Basic Model Interface, called with every answer looked at once."""

from __future__ import annotations

import math
from difflib import get_close_matches
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from titin.errors import Error

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

    def number(self, method: str, *arguments: Any, lacking: str = "write it", infinite: bool = False) -> float:
        """A number, finite unless ``infinite`` allows others, of a method that the model has to have."""
        found = self.call(method, *arguments, lacking=lacking)
        if isinstance(found, np.ndarray) and found.ndim == 0:
            found = found[()]
        try:
            number = float(found) if isinstance(found, Real) and not isinstance(found, bool) else math.nan
        except OverflowError:
            number = math.inf
        if math.isnan(number):
            raise self.wrong(method, arguments, f"returned {found!r}, and not a number")
        if math.isinf(number) and not infinite:
            raise self.wrong(method, arguments, f"returned {found!r}, and not a finite number")
        return number

    def count(self, method: str, *arguments: Any) -> int:
        """A whole number from 0, of a method that the model has to have."""
        found = self.number(method, *arguments)
        if found < 0 or found != int(found):
            raise self.wrong(method, arguments, f"returned {found!r}, and not a count")
        return int(found)

    def names(self, method: str) -> tuple[str, ...]:
        """The names of the input or the output variables."""
        found = self.call(method, lacking="write it")
        try:
            names = tuple(found)
        except TypeError:
            names = (found,)
        if isinstance(found, str) or not all(isinstance(name, str) for name in names):
            raise self.wrong(method, (), f"returned {found!r}, and not names: return a tuple of texts")
        return names

    def kind(self, name: str) -> np.dtype[Any]:
        """The type of the elements of a variable."""
        told = self.call("get_var_type", name, lacking="write it")
        size = self.count("get_var_itemsize", name)
        word = " ".join(str(told).lower().split()) if isinstance(told, str) else told
        try:
            if not isinstance(told, str | type | np.dtype):
                raise TypeError
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
                buffer = self._buffers[name] = np.zeros(math.prod(shape), kind)
            result = self.call(method, name, buffer, lacking="write it, or get_value_ptr")
            found = result if isinstance(result, np.ndarray) else buffer
        self.fits(found, method, name, kind, shape)
        return found.reshape(shape)

    def fits(self, found: NDArray[Any], method: str, name: str, kind: np.dtype[Any], shape: tuple[int, ...]) -> None:
        """Raises :class:`ModelError` for an array of another type or shape than the model has told.

        An array of one dimension has the values in C order.
        """
        if found.dtype != kind:
            raise self.wrong(method, (name,), f"returned {found.dtype}, and get_var_type tells {kind}")
        if found.size != math.prod(shape) or (found.ndim > 1 < len(shape) and found.shape != shape):
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


def near(name: str, known: list[str] | tuple[str, ...]) -> str:
    """The names that may be meant, for the end of a sentence."""
    found = get_close_matches(name, known, 3, 0.5)
    return f"; {listed(found, 'or')} may be meant" if found else ""


def listed(words: list[str], last: str = "and") -> str:
    """Words in a sentence."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _called(method: str, arguments: tuple[Any, ...]) -> str:
    """A call as in the text of an error; arrays are left out."""
    return f"{method}({', '.join(repr(a) for a in arguments if not isinstance(a, np.ndarray))})"


def _by(shape: tuple[int, ...]) -> str:
    return " by ".join(map(str, shape)) if shape else "one"
