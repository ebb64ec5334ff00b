"""The ports of an instance, as a program declares and names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import titin
    from ymmsl.v0_2 import Operator

#: MUSCLE3's names of operators, by titin's; in the order of the loop.
OPERATORS = {"f_init": "F_INIT", "o_i": "O_I", "s": "S", "o_f": "O_F"}

SETTINGS_PORT = "muscle_settings_in"


class Port:
    """A port of an open instance."""

    __slots__ = (
        "connected",
        "counted",
        "handle",
        "is_f_init",
        "name",
        "operator",
        "own_slots",
        "receive",
        "resizable",
        "send",
        "sends",
        "taken",
        "vector",
    )

    def __init__(self, handle: titin.Port) -> None:
        self.handle = handle
        # Bound once: a look-up for each message less.
        self.send = handle._send
        self.receive = handle._receive
        self.name = handle.name
        self.operator = handle.operator
        self.sends = handle.operator in ("o_i", "o_f")
        self.is_f_init = handle.operator == "f_init"
        self.vector = handle.vector
        self.connected = handle.connected
        # A vector port without a conduit has no slots in MUSCLE3, and as many as the program sets.
        self.resizable = handle.resizable or (self.vector and not self.connected)
        self.counted = self.connected
        """Whether titin has the number of slots: not without a conduit, nor once the instance is closed."""
        self.own_slots = 0
        """The number of slots that titin does not have."""
        self.taken: set[int | None] = set()
        """Of an F_INIT port, the slots that were received in this use; None for a port without slots."""

    def length(self) -> int:
        """The number of slots. Raises RuntimeError for a port without slots."""
        if not self.vector:
            raise RuntimeError(
                f"Tried to get length of scalar port {self.name}: only a port declared as name[] has one"
            )
        return self.handle.slots if self.counted else self.own_slots

    def resize(self, length: int) -> None:
        """Sets the number of slots. Raises :class:`titin.Error` where titin refuses it."""
        if self.counted:
            self.handle.slots = length
        else:
            self.own_slots = length

    def keep_length(self) -> None:
        """Keeps the number of slots, since the instance is about to close."""
        if self.vector:
            self.own_slots, self.counted = self.length(), False


def declared(ports: Mapping[Operator, Iterable[str]] | None) -> dict[str, list[str]]:
    """The ports that a program gives to :class:`libmuscle.Instance`, as :class:`titin.Instance` takes them.

    Empty if the ports are those of the description. Raises ValueError for more than one dimension, and RuntimeError for
    a name that is reserved.
    """
    known = {theirs: ours for ours, theirs in OPERATORS.items()}
    result: dict[str, list[str]] = {}
    for operator, names in (ports or {}).items():
        for name in names:
            _check_name(name)
        result[known[operator.name]] = list(names)
    return result


def by_operator(ports: Iterable[Port]) -> dict[Operator, list[str]]:
    """The names of these ports, by MUSCLE3's operators; operators without a port are left out."""
    from ymmsl.v0_2 import Operator

    result: dict[Any, list[str]] = {}
    for port in ports:
        result.setdefault(Operator[OPERATORS[port.operator]], []).append(port.name)
    return result


def _check_name(name: str) -> None:
    if name.endswith("[][]"):
        raise ValueError(f'Port description "{name}" is invalid: ports can have at most one dimension, as in name[].')
    if name.startswith("muscle_"):
        raise RuntimeError(
            'Port names starting with "muscle_" are reserved for MUSCLE, please rename port '
            f'"{name.removesuffix("[]")}"'
        )
