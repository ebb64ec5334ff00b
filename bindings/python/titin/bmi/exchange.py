"""What goes by a port: a message, a message for each slot, or a field whose parts go from rank to rank."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
import titin
from numpy.typing import NDArray
from titin.bmi.model import ModelError
from titin.bmi.parallel import Ranks
from titin.bmi.ports import OPERATORS, Variable
from titin.bmi.units import is_told


class Exchange(Protocol):
    """A port in one use. All ranks make each call together."""

    @property
    def port(self) -> str: ...

    def taken(self) -> Any:
        """What the model would send now; its arrays may be the model's own memory."""

    def send(self, taken: Any, timestamp: float, next_timestamp: float | None = None) -> None:
        """Sends what was taken from the model."""

    def receive(self) -> float | None:
        """Receives, gives the model what has come, and returns the time; None where nothing is coupled in this step."""


class Messages:
    """A port that carries whole arrays. Of several ranks the first sends, and all get what comes."""

    def __init__(
        self, instance: titin.Instance, variable: Variable, ranks: Ranks, metadata: bool, slots: int | None
    ) -> None:
        self.port = variable.port
        self._instance = instance
        self._variable = variable
        self._ranks = ranks
        self._metadata = metadata
        self._slots = slots
        whole = variable.whole
        if slots is not None and (not whole or whole[0] != slots):
            operator = OPERATORS[instance.ports[self.port].operator]
            raise ModelError(
                f"port {self.port} ({operator}) has {slots} slots, and {variable.name} has the shape {list(whole)}: "
                "slots are taken from the first dimension, so its extent has to be the number of slots; or put a "
                "titin.splitter or titin.merger between the two"
            )

    def taken(self) -> Any:
        variable = self._variable
        array = self._gathered(variable.values())
        if array is None:
            return [None] * (self._slots or 1)
        if self._slots is None:
            return [variable.message(array, self._metadata)]
        return [variable.piece(array[slot], self._metadata) for slot in range(self._slots)]

    def send(self, taken: Any, timestamp: float, next_timestamp: float | None = None) -> None:
        for slot, data in enumerate(taken):
            self._instance.send(
                self.port,
                data,
                timestamp=timestamp,
                next_timestamp=next_timestamp,
                slot=None if self._slots is None else slot,
            )

    def receive(self) -> float:
        variable = self._variable
        if self._slots is None:
            message = self._instance.receive(self.port)
            array = variable.read(message.data, variable.whole)
            if array is not None:
                self._give(array)
            return message.timestamp
        received = [self._instance.receive(self.port, slot=slot) for slot in range(self._slots)]
        pieces = [variable.read(message.data, variable.whole[1:]) for message in received]
        if any(piece is not None for piece in pieces):
            self._give(self._joined(pieces))
        return max(message.timestamp for message in received)

    def _joined(self, pieces: list[NDArray[Any] | None]) -> NDArray[Any]:
        """One array from those of all slots. A slot in which nil came stays as the model has it."""
        variable = self._variable
        if any(piece is None for piece in pieces):
            own = self._ranks.gathered(self._own(variable.values()))
            joined = self._put(own)
        else:
            joined = np.empty(variable.whole, variable.kind)
        for slot, piece in enumerate(pieces):
            if piece is not None:
                joined[slot] = piece.reshape(variable.whole[1:])
        return joined

    def _give(self, array: NDArray[Any]) -> None:
        part = self._variable.part
        self._variable.give(array if part is None else array.reshape(-1)[part.numbers])

    def _gathered(self, values: NDArray[Any]) -> NDArray[Any] | None:
        """The array of all ranks on the first; None on the others."""
        if self._variable.part is None:
            return values if self._ranks.rank == 0 else None
        parts = self._ranks.gathered_by_first(self._own(values))
        return None if parts is None else self._put(parts)

    def _own(self, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """The values that are this rank's own, and their numbers in the whole; no numbers for all of them."""
        part = self._variable.part
        if part is None:
            return values, None
        numbers = part.numbers if part.own is None else part.numbers[part.own]
        return part.sent(values).reshape(-1), numbers

    def _put(self, parts: list[tuple[NDArray[Any], NDArray[np.int64] | None]]) -> NDArray[Any]:
        """The array of these parts. Raises :class:`ModelError` unless each element is of one rank."""
        variable = self._variable
        if parts[0][1] is None:
            return parts[0][0].copy()
        whole = np.empty(math.prod(variable.whole), variable.kind)
        owners = np.full(whole.size, -1, np.int32)
        for rank, (values, numbers) in enumerate(parts):
            assert numbers is not None
            twice = numbers[owners[numbers] >= 0]
            if twice.size:
                raise ModelError(
                    f"element {twice[0]} of {variable.name} is of rank {owners[twice[0]]} and of rank {rank}: each "
                    "element is one rank's own, and a ghost on the others (get_grid_node_partition)"
                )
            owners[numbers] = rank
            whole[numbers] = values
        if (owners < 0).any():
            raise ModelError(
                f"element {int(np.argmin(owners))} of {variable.name}, whose shape is {list(variable.whole)}, is of no "
                "rank: the parts of all ranks make up the whole grid"
            )
        return whole.reshape(variable.whole)


class FieldExchange:
    """A port that carries a field: each rank sends and receives its own part.

    A field tells no unit and no grid; ``unit`` is what the user says of what comes, and empty if the user says nothing.
    """

    def __init__(self, field: titin.Field, variable: Variable, sends: bool, unit: str) -> None:
        self.port = variable.port
        self._field = field
        self._variable = variable
        self._buffer = None if sends else np.zeros(variable.shape, variable.kind)
        self._unit = unit

    def taken(self) -> NDArray[Any]:
        values = self._variable.values()
        return values if self._variable.part is None else self._variable.part.sent(values)

    def send(self, taken: Any, timestamp: float, next_timestamp: float | None = None) -> None:
        self._field.send(taken, timestamp=timestamp, next_timestamp=next_timestamp)

    def receive(self) -> float | None:
        assert self._buffer is not None
        stamps = self._field.receive(self._buffer)
        if stamps is None:
            return None
        self._variable.give(self._variable.converted(self._buffer, self._unit))
        return stamps.timestamp


class Fields:
    """The fields of an instance, which outlive the uses of its model."""

    def __init__(self, instance: titin.Instance) -> None:
        self._instance = instance
        self._declared: dict[str, tuple[titin.Field, Any]] = {}

    def of(self, variable: Variable, sends: bool, unit: str) -> FieldExchange:
        """The field of a port, declared once; what comes is in this unit, if the user has said so.

        Raises :class:`ModelError` where a later use has another array.
        """
        part = variable.part
        owned = None if part is None else part.owned(sends)
        elements = None if part is None else (part.numbers.tobytes(), part.own is not None and part.own.tobytes())
        layout = (variable.whole, variable.kind, hash(elements))
        known = self._declared.get(variable.port)
        if known is None:
            field = self._instance.field(variable.port, variable.whole, variable.kind, owned=owned)
            known = self._declared[variable.port] = (field, layout)
            if not sends and not unit and is_told(variable.units) and self._instance.rank == 0:
                self._instance.log(
                    "info",
                    f"what comes on port {variable.port} is a field, which tells no unit: it is taken to be in "
                    f"'{variable.units}', as {variable.name} is; --unit {variable.port}=UNIT (bmi_units) converts it",
                )
        elif known[1] != layout:
            raise ModelError(
                f"{variable.name} has another shape or part than in the use before, and port {variable.port} carries a "
                "field, which is declared once: have the configuration keep the grid"
            )
        return FieldExchange(known[0], variable, sends, unit)
