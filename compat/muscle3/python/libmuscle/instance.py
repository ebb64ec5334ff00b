"""An instance of a MUSCLE3 program, over :class:`titin.Instance`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import titin

from libmuscle import command_line, values
from libmuscle.checkpoints import Checkpoints
from libmuscle.flags import InstanceFlags
from libmuscle.grid import Grid
from libmuscle.message import Message
from libmuscle.ports import SETTINGS_PORT, Port, by_operator, declared
from libmuscle.settings import Value, look_up, names
from libmuscle.values import PLAIN, SENT_UNCHANGED, decode, encode

if TYPE_CHECKING:
    import logging

    from ymmsl.v0_2 import Operator

_NO_FLAGS = InstanceFlags(0)
# The overlay in force of most instances.
_EMPTY: dict[str, Value] = {}
# An object whose attributes are set by the caller.
_new = object.__new__


class Instance:
    """One running copy of a program, in a run of titin's.

    ``ports``: the names of the ports for each operator, ``name[]`` for a vector port; without them the ports are those
    of the description. ``flags``: see :class:`InstanceFlags`. ``communicator``: of a parallel program, its communicator
    of mpi4py; all ranks make all calls together, the messages to send are those of the rank ``root``, and all ranks get
    what is received.

    The constructor waits until the manager has answered. It and all calls raise RuntimeError if the run has failed, and
    where MUSCLE3 does; the text begins as MUSCLE3's and goes on with titin's.
    """

    _joined = False
    """Whether there has been an instance in this process."""

    def __init__(
        self,
        ports: Mapping[Operator, Iterable[str]] | None = None,
        flags: InstanceFlags = _NO_FLAGS,
        communicator: Any = None,
        root: int = 0,
    ) -> None:
        name, manager = command_line.instance_name(), command_line.manager_location()
        self._begin(name, manager, declared(ports), InstanceFlags(flags), communicator, root)

    @classmethod
    def _join(cls, name: str, manager: str, ports: dict[str, list[str]]) -> Instance:
        """An instance that a test plays: by its name, whatever the command line says."""
        instance = cls.__new__(cls)
        instance._begin(name, manager, ports, _NO_FLAGS, None, 0)
        return instance

    def _begin(
        self,
        name: str,
        manager: str,
        wanted: dict[str, list[str]],
        flags: InstanceFlags,
        communicator: Any,
        root: int,
    ) -> None:
        self._explicit = InstanceFlags.DONT_APPLY_OVERLAY in flags
        self._checkpoints = Checkpoints(InstanceFlags.USES_CHECKPOINT_API in flags)
        self._handler: logging.Handler | None = None
        overlays: Any = "explicit" if self._explicit else "inherited"
        skips = InstanceFlags.SKIP_MMSF_SEQUENCE_CHECKS in flags
        comm = None if communicator is None else _root_first(communicator, root)
        try:
            # The setting `muscle_checks` goes before `checks`: titin reads it.
            self._titin = titin.Instance(
                f_init=wanted.get("f_init"),
                o_i=wanted.get("o_i"),
                s=wanted.get("s"),
                o_f=wanted.get("o_f"),
                name=name,
                manager=manager,
                unchecked="the program has the flag SKIP_MMSF_SEQUENCE_CHECKS" if skips else None,
                checks="warn",
                overlays=overlays,
                comm=comm,
            )
        except titin.Error as raised:
            raise RuntimeError(f"{name} could not join the run: {raised}") from raised
        Instance._joined = True
        self._name = self._titin.name
        self._shut_down = False

        self._settings: dict[str, Value] | None = None
        """The settings in force, by full name; None if they are not known since the last reuse."""
        self._known_overlay: dict[str, Value] | None = _EMPTY
        """The settings overlay in force; None if it is not known since the last reuse."""
        self._to_attach: dict[str, Value] | None = None
        """The overlay for messages to which the program gives none; None leaves the choice to titin."""
        self._ports = self._all_ports(wanted)
        self._sending = {name: port for name, port in self._ports.items() if port.sends}
        self._receiving = {name: port for name, port in self._ports.items() if not port.sends}

        self._strict_types = self._setting("muscle_strict_types", False) is True
        from libmuscle import logs, uncaught

        try:
            self._handler = logs.set_up(self._titin, self._known_settings())
        except BaseException as raised:
            # The instance has joined: without a reason the run would report that it did not close.
            self._end_by(raised)
            raise
        uncaught.watch(self)

    # The reuse loop

    def reuse_instance(self) -> bool:
        """Begins the next use; False if there is none, and the instance has left the run then.

        Waits for the messages on connected F_INIT ports and on ``muscle_settings_in``. Without any of these there is
        one use.
        """
        self._checkpoints.reuse()
        try:
            again = self._titin.reuse()
        except titin.Error as raised:
            self._give_up(raised, "Could not begin the next use")
        self._settings = None
        self._checkpoints.reused(again)
        if not again:
            self._leave()
            return False
        self._known_overlay = None
        if self._explicit:
            self._to_attach = self._overlay() or None
        for port in self._receiving.values():
            if port.taken:
                port.taken.clear()
        return True

    def error_shutdown(self, message: str) -> None:
        """Fails the run, with this instance as the first that failed and this text as the reason. Then end."""
        self._fail(message)

    # Settings

    def list_settings(self) -> list[str]:
        """The names of all settings for which this instance can ask."""
        return names(self._known_settings(), self._name)

    def get_setting(self, name: str, typ: str | None = None, *, default: Any = None) -> Any:
        """The value of a setting.

        ``typ``: ``"str"``, ``"int"``, ``"float"``, ``"bool"``, ``"[int]"``, ``"[float]"``, ``"[[float]]"``, or None for
        any. A whole number is no ``float``. Raises KeyError for a setting that is not set if there is no ``default``,
        TypeError for a value of another type, ValueError for an unknown type.
        """
        try:
            return look_up(self._known_settings(), self._name, name, typ)
        except KeyError:
            if default is None:
                raise
            return default

    # Ports

    def list_ports(self) -> dict[Operator, list[str]]:
        """The names of the ports by operator, without ``[]``."""
        return by_operator(self._ports.values())

    def is_connected(self, port: str) -> bool:
        """Whether a conduit leads to or from this port. Raises KeyError for an unknown port, as all calls here do."""
        return self._any_port(port).connected

    def is_vector_port(self, port: str) -> bool:
        """Whether the port has slots."""
        return self._any_port(port).vector

    def is_resizable(self, port: str) -> bool:
        """Whether the number of slots is set at run time."""
        return self._any_port(port).resizable

    def get_port_length(self, port: str) -> int:
        """The number of slots. Raises RuntimeError for a port without slots."""
        return self._any_port(port).length()

    def set_port_length(self, port: str, length: int) -> None:
        """Sets the number of slots. Raises RuntimeError for a port that is not resizable."""
        known = self._any_port(port)
        if not known.resizable:
            raise RuntimeError(
                f"Tried to resize port {port}, but it is not resizable: ask is_resizable() first; the number of slots "
                "follows from the multiplicities in the yMMSL file"
            )
        try:
            known.resize(length)
        except titin.Error as raised:
            raise RuntimeError(f"Tried to resize port {port} to {length}: {raised}") from raised

    # Messages

    def send(self, port_name: str, message: Message, slot: int | None = None) -> None:
        """Sends a message; does nothing on a port without a conduit.

        The data may be changed once the call has returned. The call waits only while the buffer of the conduit is full.
        Without settings the message takes the overlay in force along.
        """
        port = self._sending.get(port_name)
        if port is None or port.vector is (slot is None):
            self._refuse_port(port_name, slot, sends=True)
        data = message.data
        if self._strict_types:
            values.refuse_what_muscle3_refuses(data)
        if type(data) not in SENT_UNCHANGED:
            data = data.array if type(data) is Grid and data.indexes is None else encode(data)
        settings = self._to_attach if message.settings is None else values.settings_to_dict(message.settings)
        try:
            port.send(data, message.timestamp, message.next_timestamp, slot, settings)
        except titin.Error as raised:
            self._sending_failed(port, slot, data, raised)

    def receive(self, port_name: str, slot: int | None = None, default: Message | None = None) -> Message:
        """Receives a message, and waits for it. Arrays in its data are read-only.

        ``default``: the result if no conduit leads to the port; without a default that is a RuntimeError.
        """
        port = self._receiving.get(port_name)
        if port is None or port.vector is (slot is None):
            self._refuse_port(port_name, slot, sends=False)
        if not port.connected:
            return self._unconnected(port, default)
        # The cost of every message: one call into titin, and none beside it.
        settings = None
        try:
            if port.is_f_init:
                if slot in port.taken:
                    self._refuse_second(port)
                port.taken.add(slot)
                timestamp, next_timestamp, data, overlay = port.receive(slot)
                if self._explicit:
                    settings = values.settings_from_dict(overlay or {})
            else:
                timestamp, next_timestamp, data, overlay = port.receive(slot)
                if overlay is not None or self._known_overlay is not _EMPTY:
                    self._check_overlay(port, overlay or {})
        except titin.Error as raised:
            self._receiving_failed(port, slot, raised)
        kind = type(data)
        if kind not in PLAIN:
            if kind in SENT_UNCHANGED:
                # An array without names.
                grid = _new(Grid)
                grid.array = data
                grid.indexes = None
                data = grid
            else:
                data = decode(data)
        message = _new(Message)
        message.timestamp = timestamp
        message.next_timestamp = next_timestamp
        message.data = data
        message.settings = settings
        return message

    def receive_with_settings(self, port_name: str, slot: int | None = None, default: Message | None = None) -> Message:
        """Receives a message with the settings overlay that has come with it, for programs that pass on messages.

        On an F_INIT port the instance needs the flag ``DONT_APPLY_OVERLAY``.
        """
        port = self._receiving.get(port_name)
        if port is None or port.vector is (slot is None):
            self._refuse_port(port_name, slot, sends=False)
        if not port.connected:
            return self._unconnected(port, default)
        timestamp, next_timestamp, data, overlay = self._take(port, slot)
        if port.is_f_init and not self._explicit:
            self._refuse(
                "If you use receive_with_settings() on an F_INIT port, then you have to set the flag "
                f"'InstanceFlags.DONT_APPLY_OVERLAY' when creating the Instance: the settings of port {port_name} have "
                "been applied already"
            )
        return Message(timestamp, next_timestamp, decode(data), values.settings_from_dict(overlay or {}))

    # Snapshots

    def resuming(self) -> bool:
        """False: titin takes no snapshots."""
        return self._checkpoints.resuming()

    def should_init(self) -> bool:
        """True: an instance always begins anew."""
        return self._checkpoints.should_init()

    def load_snapshot(self) -> Message:
        """Raises RuntimeError: there is no snapshot."""
        self._checkpoints.load()

    def should_save_snapshot(self, timestamp: float) -> bool:
        """False: nothing is to be saved."""
        return self._checkpoints.should_save()

    def save_snapshot(self, message: Message) -> None:
        """Raises RuntimeError: nothing is to be saved."""
        self._checkpoints.save("save_snapshot")

    def should_save_final_snapshot(self) -> bool:
        """False: nothing is to be saved. Does not wait."""
        return self._checkpoints.should_save_final()

    def save_final_snapshot(self, message: Message) -> None:
        """Raises RuntimeError: nothing is to be saved."""
        self._checkpoints.save("save_final_snapshot")

    # Helpers: opening and leaving

    def _leave(self) -> None:
        """Closes the instance after its last use, and waits until its receivers have what was sent."""
        self._end()
        try:
            self._titin.close()
        except (titin.PeerLost, titin.Deadlock, titin.ConnectionFailed) as raised:
            # The program has done its part. The run's report names the instance that failed.
            from libmuscle.logs import logger

            logger.warning("%s: the run has failed at its end: %s", self._name, raised)
        except titin.Error as raised:
            raise RuntimeError(str(raised)) from raised

    def _fail(self, text: str) -> None:
        """Logs the text, and fails the run with it."""
        if self._shut_down:
            return
        from libmuscle.logs import logger

        self._end()
        logger.critical(text)
        with suppress(titin.Error):
            self._titin.fail(text)
        self._close_failed()

    def _give_up(self, raised: titin.Error, text: str) -> NoReturn:
        """Ends the instance after an error of titin's, and raises the error for the program."""
        self._end_by(raised)
        raise RuntimeError(f"{text}: {raised}") from raised

    def _end_by(self, raised: BaseException) -> None:
        """Ends the instance, unless it has ended, with this exception as the reason."""
        if self._shut_down:
            return
        self._end()
        # As at the end of a `with` block: titin tells the cause from its consequences.
        self._titin.__exit__(type(raised), raised, raised.__traceback__)
        self._close_failed()

    def _close_failed(self) -> None:
        """Closes an instance of a run that has failed, which is why closing may fail too."""
        with suppress(titin.Error):
            self._titin.close()

    def _end(self) -> None:
        """Keeps what the program may ask for once titin's instance is closed, which is next."""
        self._shut_down = True
        with suppress(titin.Error):
            self._known_settings()
            for port in self._ports.values():
                port.keep_length()
        if self._handler is not None:
            from libmuscle import logs

            logs.take_down(self._handler)
            self._handler = None

    def _refuse(self, text: str) -> NoReturn:
        """Fails the run because of a call that is wrong."""
        self._fail(text)
        raise RuntimeError(text)

    # Helpers: settings

    def _overlay(self) -> dict[str, Value]:
        """The settings overlay in force."""
        if self._known_overlay is None:
            self._known_overlay = self._titin.overlay or _EMPTY
        return self._known_overlay

    def _known_settings(self) -> dict[str, Value]:
        if self._settings is None:
            self._settings = self._titin.settings
        return self._settings

    def _setting(self, name: str, default: Value) -> Value:
        try:
            return look_up(self._known_settings(), self._name, name, None)
        except KeyError:
            return default

    # Helpers: ports and messages

    def _all_ports(self, wanted: dict[str, list[str]]) -> dict[str, Port]:
        """The ports in the order in which the program has declared them, else in that of the description."""
        handles = self._titin.ports
        order = [name.removesuffix("[]") for names in wanted.values() for name in names] or [*handles]
        return {name: Port(handles[name]) for name in order if name != SETTINGS_PORT}

    def _any_port(self, name: str) -> Port:
        return self._ports[name]

    def _take(self, port: Port, slot: int | None) -> tuple[float, float | None, Any, dict[str, Value] | None]:
        """What has come: timestamp, next timestamp, data, and the settings overlay if there is one."""
        if port.is_f_init:
            if slot in port.taken:
                self._refuse_second(port)
            port.taken.add(slot)
        try:
            return port.receive(slot)
        except titin.Error as raised:
            self._receiving_failed(port, slot, raised)

    def _refuse_second(self, port: Port) -> NoReturn:
        self._refuse(
            f'Tried to receive twice on the same port "{port.name}", that\'s not possible. Did you forget to call '
            "reuse_instance() in your reuse loop?"
        )

    def _receive_within(self, port_name: str, slot: int | None, timeout: float) -> Message:
        """Receives on an S port as :meth:`receive` does, for at most so many seconds. Raises RuntimeError after."""
        port = self._receiving.get(port_name)
        if port is None or port.vector is (slot is None):
            self._refuse_port(port_name, slot, sends=False)
        try:
            received = self._titin.receive(port.handle, slot=slot, timeout=timeout)
        except titin.Error as raised:
            self._receiving_failed(port, slot, raised)
        return Message(received.timestamp, received.next_timestamp, decode(received.data))

    def _unconnected(self, port: Port, default: Message | None) -> Message:
        if default is None:
            self._refuse(
                f'Tried to receive on port "{port.name}", which is disconnected, and no default value was given. '
                "Either specify a default, or connect a sending component to this port."
            )
        return default

    def _refuse_port(self, name: str, slot: int | None, *, sends: bool) -> NoReturn:
        port = self._ports.get(name)
        if port is None:
            self._refuse(
                f'Port "{name}" does not exist on "{self._name}". Please check the name and the list of ports you gave '
                f"for this component; they are {', '.join(self._ports) or 'none'}"
            )
        if port.sends is not sends:
            verb = "sending" if sends else "receiving"
            self._refuse(f'Port "{name}" does not allow {verb} messages: it is an {port.operator.upper()} port')
        if port.vector:
            self._refuse(f'Port "{name}" is a vector port, but no slot was given.')
        self._refuse(
            f'Port "{name}" is not a vector port, but a slot was given. Please check your send call and your port '
            f'declarations; a vector port is declared as "{name}[]"'
        )

    def _refuse_slot(self, port: Port, slot: int | None, raised: titin.Error) -> None:
        """Fails the run if the slot is beyond the port's length.

        A run that has failed already has another reason: a peer may not have told the length yet.
        """
        if self._shut_down or isinstance(raised, titin.PeerLost):
            return
        if slot is not None and not 0 <= slot < port.length():
            self._refuse(
                f'Tried to send or receive on slot {slot} of port "{port.name}", which has length {port.length()}. '
                "Please check your code and/or the multiplicities in the model description."
            )

    def _check_overlay(self, port: Port, overlay: dict[str, Value]) -> None:
        """Refuses a message with another settings overlay than the one in force."""
        if overlay == self._overlay():
            return
        self._refuse(
            f'Unexpectedly received data from a parallel universe on port "{port.name}". My settings are '
            f'"{self._overlay()}" and I received from a universe with "{overlay}". A program that passes on messages '
            "of several members receives by receive_with_settings()"
        )

    def _sending_failed(self, port: Port, slot: int | None, data: Any, raised: titin.Error) -> None:
        """Raises the error of a send as MUSCLE3 does, which looks at nothing that has no receiver."""
        if not port.connected and isinstance(raised, (titin.TypeMismatch, titin.UsageError, titin.Closed)):
            return
        if isinstance(raised, titin.TypeMismatch):
            if hasattr(data, "dtype"):
                raise RuntimeError(f"Unsupported array data type: {raised}") from raised
            raise raised
        self._refuse_slot(port, slot, raised)
        self._give_up(raised, f'Could not send on port "{port.name}"')

    def _receiving_failed(self, port: Port, slot: int | None, raised: titin.Error) -> NoReturn:
        if isinstance(raised, titin.PortClosed):
            text = f"Port {port.name} was closed while trying to receive on it, did the peer crash?"
        elif isinstance(raised, titin.Deadlock):
            text = f"Deadlock detected while receiving a message on port '{port.name}'"
        else:
            self._refuse_slot(port, slot, raised)
            text = f"Error while receiving a message on port '{port.name}'"
        self._give_up(raised, text)


def _root_first(communicator: Any, root: int) -> Any:
    """A communicator of the same ranks with ``root`` as rank 0, which is the one that titin sends and receives on."""
    if root == 0:
        return communicator
    return communicator.Split(0, -1 if communicator.Get_rank() == root else communicator.Get_rank())
