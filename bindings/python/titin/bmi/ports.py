"""The ports of a component and the variables of a model: which is which, and what goes by each port."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from titin.bmi import messages
from titin.bmi.grids import Grid
from titin.bmi.model import Model, ModelError, near
from titin.bmi.parallel import Parts
from titin.bmi.units import UnitError, conversion, is_told
from titin.data import Array

OPERATORS = {"f_init": "F_INIT", "o_i": "O_I", "s": "S", "o_f": "O_F"}


class Declared(Protocol):
    """A port as an instance of titin has it."""

    @property
    def name(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def vector(self) -> bool: ...
    @property
    def connected(self) -> bool: ...


def assign(ports: Iterable[Declared], names: Mapping[str, str], model: Model) -> dict[str, str]:
    """The variable of each port. Raises :class:`ModelError` for a port that fits none.

    ``names`` has the variables of ports with names of their own.
    """
    inputs, outputs = model.names("get_input_var_names"), model.names("get_output_var_names")
    ports = list(ports)
    lost = [port for port in names if port not in {declared.name for declared in ports}]
    if lost:
        known = [declared.name for declared in ports]
        raise ModelError(
            f"the variables name a port {lost[0]} (for {names[lost[0]]}), which the description does not have: it has "
            f"{', '.join(known) or 'no ports'}{near(lost[0], known)}"
        )
    found = {}
    for port in ports:
        variable = names.get(port.name, port.name)
        receives = port.operator in ("f_init", "s")
        own, other = (inputs, outputs) if receives else (outputs, inputs)
        kind, opposite = ("input", "output") if receives else ("output", "input")
        what = f"port {port.name} ({OPERATORS[port.operator]})"
        if variable not in own and variable in other:
            raise ModelError(
                f"{what} {'receives' if receives else 'sends'}, but {variable} is an {opposite} variable of {model} "
                f"only: give the port another operator; the {kind} variables are {', '.join(own) or 'none'}"
            )
        if variable not in own:
            raise ModelError(
                f"{what} names no {kind} variable of {model}{near(variable, own)}: give it the name of one, or say "
                f"which it is by --variable {port.name}=VARIABLE (setting bmi_variables; in a description `variables` "
                f"beside `bmi`); the {kind} variables are {', '.join(own) or 'none'}"
            )
        found[port.name] = variable
    return found


class Variable:
    """A variable of a model behind a port, in one use.

    ``shape`` is that of the model's array, and ``whole`` that of the arrays of all ranks together.
    """

    def __init__(self, model: Model, name: str, port: str, grids: dict[int, Grid], parts: Parts | None = None) -> None:
        self.name = name
        self.port = port
        self._model = model
        self.kind = model.kind(name)
        size = model.count("get_var_nbytes", name)
        if size % self.kind.itemsize:
            raise model.wrong(
                "get_var_nbytes", (name,), f"returned {size}, and get_var_itemsize tells {self.kind.itemsize} for each"
            )
        count = size // self.kind.itemsize
        self.units = model.text("get_var_units", name)
        self.location = model.text("get_var_location", name).lower()
        number = model.count("get_var_grid", name)
        self.grid = grids.get(number) or grids.setdefault(number, Grid(model, number))
        self.part = parts.of(name, self.grid, count, self.location) if parts else None
        if self.part is not None:
            self.shape: tuple[int, ...] = self.part.shape
            self.names = self.grid.names(self.part.whole, self.location)
        elif model.has("get_var_shape"):
            # Libraries by xmipy's convention tell the shape of a variable itself.
            self.shape = tuple(map(int, model.call("get_var_shape", name)))
            fits = self.shape == self.grid.shape
            self.names = self.grid.layout(name, math.prod(self.shape), "")[1] if fits else ()
        else:
            self.shape, self.names = self.grid.layout(name, count, self.location)
        self.whole = self.shape if self.part is None else self.part.whole
        self._is_told = False

    def about(self) -> dict[str, Any]:
        """What a message tells beside the array; the grid is told in the first message of a use."""
        about: dict[str, Any] = {"units": self.units} if is_told(self.units) else {}
        if not self._is_told:
            grid = self.grid.told(whole=self.part is None)
            if self.part is not None and "shape" in grid and self.location in ("", "node"):
                grid |= {"shape": list(self.whole), "size": math.prod(self.whole)}
            about |= {"variable": self.name, "grid": grid}
            about |= {"location": self.location} if self.location else {}
            self._is_told = True
        return about

    def values(self) -> NDArray[Any]:
        """The values that the model has now, without a copy where the model gives its own memory."""
        return self._model.values(self.name, self.kind, self.shape)

    def message(self, array: NDArray[Any], metadata: bool) -> Any:
        """The data of a message with this array, which is that of the variable."""
        named = Array(array, self.names) if self.names else array
        return messages.wrap(named, self.about()) if metadata else named

    def piece(self, array: NDArray[Any], metadata: bool) -> Any:
        """The data of the message of one slot: the array without its first dimension, and without the whole's grid."""
        named = Array(array, self.names[1:]) if self.names[1:] else array
        return messages.wrap(named, {"units": self.units} if is_told(self.units) else {}) if metadata else named

    def read(self, data: Any, shape: tuple[int, ...]) -> NDArray[Any] | None:
        """The numbers in the data of a message, in the variable's unit and type; None for nil.

        Raises :class:`ModelError` for data that do not fit, such as those of another shape than this.
        """
        array, told = messages.unwrap(data, self.port)
        if array is None:
            return None
        if not fits(array.shape, shape):
            raise ModelError(
                f"what comes on port {self.port} has the shape {array.shape}, and {self.name} of {self._model} has "
                f"{shape} on its grid {self.grid.number} ({self.grid.kind}): put a component between the two that "
                "maps one grid to the other"
            )
        return self.converted(array, told)

    def converted(self, array: NDArray[Any], told: str) -> NDArray[Any]:
        """Numbers in a unit, "" if it is not told, in the variable's unit and type. Raises :class:`ModelError`."""
        try:
            convert = conversion(told, self.units)
        except UnitError as error:
            raise ModelError(
                f"what comes on port {self.port} is in '{told}', and {self.name} of {self._model} in '{self.units}': "
                f"{error}. Connect a variable that measures the same, or have one end tell another unit"
            ) from None
        return self._cast(array if convert is None else convert(array))

    def give(self, values: NDArray[Any]) -> None:
        """Gives values of the variable's type to the model: those of the rank, as many as the model's array has."""
        self._model.set(self.name, values)

    def _cast(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array in the type of the variable; real numbers are rounded, whole numbers have to fit."""
        if array.dtype == self.kind:
            return array
        if not np.can_cast(array.dtype, self.kind, "same_kind"):
            raise ModelError(
                f"what comes on port {self.port} is {array.dtype}, and {self.name} of {self._model} is {self.kind}: "
                "have the sender tell numbers of this kind"
            )
        try:
            with np.errstate(over="raise"):
                cast = array.astype(self.kind)
            fits = array.dtype.kind not in "iu" or _equal(cast, array)
        except FloatingPointError:
            fits = False
        if not fits:
            raise ModelError(
                f"what comes on port {self.port} is {array.dtype}, and has numbers that {self.name} of {self._model} "
                f"({self.kind}) cannot hold: have the sender tell smaller numbers, or the variable have a larger type"
            )
        return cast


def fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether one shape is taken for the other: the same, or of as many elements where one of the two is flat."""
    if tuple(shape) == tuple(wanted):
        return True
    return math.prod(shape) == math.prod(wanted) and (len(shape) < 2 or len(wanted) < 2)


def _equal(cast: NDArray[Any], array: NDArray[Any]) -> bool:
    """Whether whole numbers are the same in another type.

    NumPy compares whole numbers with real numbers after rounding them, so the way back is compared too.
    """
    with np.errstate(invalid="ignore"):
        return np.array_equal(cast, array) and np.array_equal(cast.astype(array.dtype), array)
