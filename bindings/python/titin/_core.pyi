import os
import pathlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from titin.data import Scale
from titin.fields import Communicator, Owned, Stamps

__version__: str

_T = TypeVar("_T")
_Value = str | int | float | bool | list[int] | list[float] | list[list[float]]

class Field:
    """Arrays spread over the ranks of an instance, which travel by one of its ports: :meth:`Instance.field`."""

    @property
    def extents(self) -> tuple[int, ...]:
        """The shape of an array on this rank, with the halo.

        Raises :class:`titin.UsageError` where arrays are flat, because the rank has several boxes, or indices of more
        than one dimension.
        """

    @property
    def owned(self) -> tuple[NDArray[np.int64], ...]:
        """The indices of the whole array that this rank owns along each dimension, without the halo.

        ``whole[np.ix_(*field.owned)]`` is the part of the rank. Raises as :attr:`extents`.
        """

    def send(self, *arrays: Any, timestamp: float, next_timestamp: float | None = None) -> None:
        """Sends this rank's part of each array to the receivers that the description couples at this step.

        All ranks call this together. The call waits until the other end has declared the field, and while a buffer is
        full. Once the call has returned, the arrays may be changed. For a receiver that pulls, titin keeps a version of
        the field. Raises as :meth:`Instance.send`, and :class:`titin.TypeMismatch` if the two ends do not fit each
        other.
        """

    def receive(self, *arrays: Any, at: float | None = None, timeout: float | None = None) -> Stamps | None:
        """Receives this rank's part into each array, and writes no other element, not even the halo.

        Of a field that is pulled (``titin: fields`` in the description) the call receives the version at or before the
        simulated time ``at``, or without ``at`` the latest version. The version for ``at`` is known once the sender has
        passed that time. If the description couples nothing at this step, the call writes nothing and returns None.

        All ranks call this together. Raises as :meth:`Instance.receive`, :class:`titin.Evicted` for a version that the
        sender does not keep, :class:`titin.PortClosed` if no version of that time will come, and
        :class:`titin.UsageError` for arrays whose elements share memory.

        When ``timeout`` is over, a part of the field may have come: make the call again with the same arrays. In an
        instance of several ranks the timeout is for the announcement by rank 0 of the sender, so that all ranks get the
        same result.
        """

    def withdraw(self) -> None:
        """For the sender: no more fields follow, and all versions are given up. The port of the receivers is closed.

        All ranks call this together. Raises as :meth:`Instance.send`.
        """

class Instance:
    """One running copy of a program, as part of a run.

    Opening joins the run that the environment names (``titin run`` sets the environment) and waits for the manager's
    answer. Ports are given by operator; ``name[]`` is a vector port. Without given ports, the ports are those of the
    description. ``name`` and ``manager`` take the place of ``TITIN_INSTANCE`` and ``TITIN_MANAGER`` in the environment.

    Where operators are declared, the order of calls is checked against the submodel execution loop, and calls out of
    order are refused. With ``checks="warn"`` they go on, and the run's log names each kind once for each port; an
    F_INIT message that a use does not receive is dropped at the next :meth:`reuse`. ``unchecked="why"`` switches the
    check off, and the reason goes to the log. The setting ``muscle_checks`` (``"strict"``, ``"warn"`` or ``"off"``), if
    the description has it, comes before both.

    ``overlays`` is what the settings overlays of messages do. ``"inherited"``: :meth:`reuse` merges those of the F_INIT
    messages; they hold for the use, and go with the messages that it sends. ``"explicit"``: an overlay is that of its
    message alone; it changes no setting, and goes only with messages to which the program gives it, for programs that
    pass on messages of several members. What comes on ``muscle_settings_in`` holds for the use all the same.

    A parallel program gives its communicator as ``comm``, for instance a communicator of mpi4py. All ranks open the
    instance, and make its calls together and in the same order: rank 0 sends and receives, and passes the results on to
    all ranks; with ``receive="root_only"`` the other ranks get messages without data, with their timestamps and
    settings. The communicator is used only while the instance is opened. Waiting ranks use no core.

    Use the instance in a ``with`` block: the end of the block closes the instance. An exception that leaves the block
    fails the run, and the report shows the last lines of the exception. An instance that is freed without closing fails
    the run too.

    Calls that wait (opening, ``reuse``, ``send``, receiving, ``close``) wait without the GIL, and answer Ctrl-C in the
    main thread. Calls on different ports may run in different threads at once. Two calls at once on one port, or two
    calls of ``reuse``, are an error that titin detects. Every call raises :class:`titin.Error` or a derived class. As
    soon as the run fails, calls raise :class:`titin.PeerLost` or :class:`titin.Deadlock`.
    """

    def __new__(
        cls,
        *,
        f_init: Iterable[str] | None = None,
        o_i: Iterable[str] | None = None,
        s: Iterable[str] | None = None,
        o_f: Iterable[str] | None = None,
        name: str | None = None,
        manager: str | None = None,
        unchecked: str | None = None,
        checks: Literal["error", "warn"] = "error",
        overlays: Literal["inherited", "explicit"] = "inherited",
        comm: Communicator | None = None,
        receive: Literal["all_ranks", "root_only"] = "all_ranks",
    ) -> Self: ...
    def reuse(self) -> bool:
        """Begins the next use of the submodel; False when there is none.

        Without connected F_INIT ports there is one use. With connected F_INIT ports the call waits for their messages,
        and returns False once the senders have finished. Settings change here. Raises :class:`titin.CallOrderError` if
        a message of the last use was not taken and ``checks`` are ``"error"``, or if only some of the senders have
        finished.
        """

    def send(
        self,
        port: str | Port,
        data: Any = None,
        *,
        timestamp: float,
        next_timestamp: float | None = None,
        slot: int | None = None,
        settings: Mapping[str, _Value] | None = None,
    ) -> None:
        """Sends a message; does nothing on a port without a conduit.

        ``data``: an array of bool, integers, float16 to float64, bfloat16 (of ``ml_dtypes``), or complex, of any rank.
        An array in C or Fortran order keeps the order; other arrays are packed in C order. Bytes in foreign order are
        swapped. Also any object with a buffer, DLPack in host memory, or the array interface; numbers, str, bytes,
        bool, None; and dicts (with str keys), lists and tuples of all these. Other dtypes are refused with a hint
        (:class:`titin.TypeMismatch`).

        ``timestamp``: the simulated time of the data. ``next_timestamp``: the simulated time of the next message on
        this port, if known. ``settings``: an overlay for the receiver's settings, in place of the overlay in force.

        The memory may be changed once the call has returned. The call waits only while the conduit's buffer is full, or
        until the receiver has joined. Raises :class:`titin.PortClosed` if the receiver has finished, and
        :class:`titin.CallOrderError` out of the loop.
        """

    def loan(
        self,
        port: str | Port,
        shape: int | Iterable[int],
        dtype: DTypeLike,
        *,
        slot: int | None = None,
        order: Literal["C", "F"] = "C",
    ) -> NDArray[Any]:
        """Memory for an array to be sent: fill the array, ``send`` this very array, and nothing is copied.

        Receivers on this host read the memory itself. So the array is read-only once the array was sent, and may be
        sent again unchanged. Older views of the array must not be written to either. The memory is not used again while
        the array or a view of the array lives. The elements have any values at first. A part or a view of the array is
        copied like any array.
        """

    def receive(
        self, port: str | Port, *, slot: int | None = None, timeout: float | None = None, default: Any = ...
    ) -> Message:
        """Receives a message; waits at most ``timeout`` seconds.

        ``default``: the result if nothing is connected to the port: a :class:`titin.Message`, or the data of a message
        at time 0. Raises :class:`titin.Timeout`, or :class:`titin.PortClosed` once the sender has finished.
        """

    def try_receive(self, port: str | Port, *, slot: int | None = None) -> Message | None:
        """Receives a message that has come already; None if no message has come. Never waits."""

    def receive_any(
        self, *ports: str | Port | list[str] | list[Port] | tuple[str | Port, ...], timeout: float | None = None
    ) -> tuple[str, int | None, Message]:
        """Receives the next message of any of these ports; gives the port's name, the slot, and the message.

        The ports are given one by one, or in a list or tuple, with all slots of vector ports. Ports take turns. Closed
        ports are passed over; raises :class:`titin.PortClosed` when all are closed.
        """

    def receive_into(
        self, port: str | Port, buffer: Any, *, slot: int | None = None, timeout: float | None = None
    ) -> Message:
        """Receives an array into memory of the program: a NumPy array, also strided, a buffer, or host DLPack.

        Dtype and shape must be those of the message. Otherwise the call raises :class:`titin.TypeMismatch`, and the
        next call gets the message. Each element keeps its index, whatever the order in memory. An array whose elements
        share memory raises :class:`titin.UsageError`.
        """

    @property
    def rank(self) -> int:
        """The rank of this process among those of the instance; 0 for a serial program."""
    @property
    def ranks(self) -> int:
        """The number of ranks of the instance; 1 for a serial program."""
    def field(
        self,
        port: str | Port,
        shape: int | Iterable[int],
        dtype: DTypeLike | list[DTypeLike],
        *,
        owned: Owned | None = None,
        halo: int | Iterable[int | tuple[int, int]] = 0,
        region: Any = None,
        order: Literal["C", "F"] = "C",
    ) -> Field:
        """Declares that a port carries a field: an array of this shape that is spread over the ranks of the instance.

        ``owned`` is the part of this rank: a :class:`titin.Grid`, ``Boxes``, ``Indices`` or ``Owner``; by default rank
        0 owns the whole array, as in a serial program. A list for ``dtype`` declares several arrays that are spread
        alike and travel together. The calls take the arrays of this rank, with a ``halo`` around the rank's part (a
        width, one for each dimension, or pairs of below and above), or flat and contiguous arrays of as many elements.
        Only ``region``, a pair of lower and upper indices or a tuple of slices, is coupled; the region of the other end
        has the same extents, and may lie elsewhere. ``order`` is the order of flat arrays in memory. All ranks call
        this together. The call does not wait for the other end.
        """

    def port(self, name: str | Port) -> Port:
        """The port with this name. Calls take the port in place of the name."""

    @property
    def ports(self) -> dict[str, Port]:
        """All ports by name: the declared ports, or those of the description."""

    @overload
    def setting(self, name: str) -> _Value: ...
    @overload
    def setting(self, name: str, kind: str) -> float: ...
    @overload
    def setting(self, name: str, kind: type[_T]) -> _T: ...
    @overload
    def setting(self, name: str, kind: None, default: _T) -> _Value | _T: ...
    @overload
    def setting(self, name: str, kind: str, default: _T) -> float | _T: ...
    @overload
    def setting(self, name: str, kind: type[_T], default: Any) -> _T:
        """The value of a setting: the most specific value that the description has for this instance.

        ``kind``: a type (``str``, ``int``, ``float``, ``bool``, ``list[int]``, ``list[float]``, ``list[list[float]]``),
        or a unit: with ``"s"`` both ``"10 ms"`` and ``0.01`` are 0.01. Whole numbers serve as ``float`` too; for a
        quantity like ``"10 ms"`` the kind has to be a unit. Without a kind the call gives the value unchanged.
        ``default``: the result for a setting that is not set; without a default the call raises
        :class:`titin.SettingError`. An unknown unit raises :class:`titin.UsageError`.
        """

    @property
    def settings(self) -> dict[str, _Value]:
        """All settings known for this instance by full name (``macro.dt``), with the overlay in force."""

    @property
    def overlay(self) -> dict[str, _Value]:
        """The settings overlay in force. It came with the messages of this use, and ``reuse`` has fixed it."""

    def will_stop(self, timestamp: float) -> bool:
        """Whether the step that begins at this time would pass the end of the use: ``while not will_stop(t): ...``.

        The use begins at the latest timestamp of its F_INIT messages, or at 0 without F_INIT messages. The use lasts
        for the setting ``t_max``, else for the scale ``total``. A step takes the setting ``dt``, else the scale ``dt``,
        and no time if there is neither. A step may pass the end by a millionth of its length, and by the rounding error
        of a sum of timesteps, which is larger at late times.

        Quantities with a unit, and scales, are converted to the unit of the timestamps (``titin: {time_unit: ...}``,
        seconds unless told). A number alone is in the unit of the timestamps. Raises :class:`titin.SettingError` if the
        description has no length of a use, or ``t_max`` or ``dt`` is negative or NaN; :class:`titin.UsageError` if a
        step is too short to change the time; :class:`titin.CallOrderError` before the F_INIT messages were received.
        """

    @property
    def scale(self) -> Scale:
        """The scales of this component in the description."""

    @property
    def name(self) -> str:
        """Name of the instance: ``macro[3]``."""

    @property
    def workdir(self) -> pathlib.Path:
        """The directory that was current when the instance was opened; ``titin run`` gives each program its own."""

    @property
    def time_unit(self) -> str:
        """The unit of timestamps, as the description has it (``titin: {time_unit: h}``): ``s`` unless told."""

    def log(self, level: int | Literal["debug", "info", "warning", "error", "critical"], text: str) -> None:
        """Sends a record to the run's log. Levels as in :mod:`logging`; see also :class:`titin.LogHandler`."""

    def skip_checks(self, reason: str) -> None:
        """Switches the check of the order of calls off from here on. The reason goes to the run's log."""

    def fail(self, text: str) -> None:
        """Fails the run: this instance is the culprit, ``text`` the reason. Close the instance afterwards."""

    def _cancel(self, port: str | Port | None = None, slot: int | None = None) -> None:
        """Gives up pending calls, which will not be made again: the calls on a port, on a slot of the port, or all."""

    def _skip_deadlocks(self) -> None:
        """Leaves the instance out of the search for deadlocks, since several tasks act on it independently."""

    def region(self, name: str) -> Region:
        """A region of the program in the profile: ``with instance.region("solve"): ...``."""

    def close(self) -> None:
        """Ends the instance's part in the run; waits until the receivers hold or have dropped every message sent.

        Messages and views of their data live on. Raises an error about the end, for instance if messages were never
        taken. Closing again does nothing.
        """

    @property
    def closed(self) -> bool:
        """Whether the instance is closed."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

class Message:
    """A message that a port has received, or a default that the program has made.

    The data of a received message are not copied: an array is a read-only NumPy view. The data live as long as any view
    of the data, past ``close()`` and the sender's end. Work on ``message.data.copy()``.
    """

    def __new__(
        cls,
        data: Any = None,
        timestamp: float = 0.0,
        next_timestamp: float | None = None,
        settings: Mapping[str, _Value] | None = None,
    ) -> Self: ...
    @property
    def port(self) -> str | None:
        """Name of the port that received the message; None for a message that the program has made."""

    @property
    def timestamp(self) -> float:
        """Simulated time of the data."""

    @property
    def next_timestamp(self) -> float | None:
        """Simulated time of the next message on the port, if the sender knows it."""

    @property
    def data(self) -> Any:
        """An array, or dict, list, str, bytes, int, float, bool or None; arrays may be nested in dicts and lists."""

    @property
    def settings(self) -> dict[str, _Value]:
        """The settings overlay that came with the message; empty if none came."""

class Port:
    """A port of an instance, from :meth:`Instance.port`."""

    @property
    def name(self) -> str:
        """The name, without ``[]``."""

    @property
    def operator(self) -> Literal["f_init", "o_i", "s", "o_f"]:
        """The operator of the submodel execution loop in which the port is used."""

    @property
    def vector(self) -> bool:
        """Whether the port has slots."""

    @property
    def resizable(self) -> bool:
        """Whether the number of slots is set at run time."""

    @property
    def connected(self) -> bool:
        """Whether anything is connected to the port."""

    @property
    def slots(self) -> int:
        """The present number of slots, 1 for a port without slots. Can be set on a sending port that is resizable."""

    @slots.setter
    def slots(self, slots: int) -> None: ...

    # For libmuscle of titin-muscle3, which makes these calls for each message.
    def _send(
        self,
        data: Any,
        timestamp: float,
        next_timestamp: float | None,
        slot: int | None,
        settings: Mapping[str, _Value] | None,
        /,
    ) -> None: ...
    def _receive(self, slot: int | None, /) -> tuple[float, float | None, Any, dict[str, Any] | None]: ...

class Region:
    """A region of the program in the profile, from :meth:`Instance.region`."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

class Pending(Exception):
    """The call of a light instance cannot go on yet, and is to be made again."""

class Ready:
    """The instances of an event loop that can go on, by their numbers."""

    def fileno(self) -> int:
        """A descriptor that is readable while an instance can go on."""

    def next(self) -> int | None:
        """The number of the next instance that can go on; None if there is none."""

class Opening:
    """An instance that has asked to join the run."""

    def __new__(
        cls,
        ready: Ready,
        number: int,
        *,
        f_init: Iterable[str] | None = None,
        o_i: Iterable[str] | None = None,
        s: Iterable[str] | None = None,
        o_f: Iterable[str] | None = None,
        name: str | None = None,
        manager: str | None = None,
        unchecked: str | None = None,
        checks: Literal["error", "warn"] = "error",
        overlays: Literal["inherited", "explicit"] = "inherited",
    ) -> Self: ...
    def end(self) -> Instance:
        """The instance; raises :class:`Pending` until the manager has answered."""
    def cancel(self) -> None:
        """Gives up the opening, which fails the run. Does nothing if the instance is open, or could not be opened."""

def convert(number: float, unit: str, wanted: str) -> float:
    """A number of a unit in another unit, by the units of settings: ``convert(1.5, "h", "min")`` is 90.

    Raises :class:`titin.UsageError` for a unit that titin does not know, and for units that measure different things.
    """

def place(name: str, manager: str) -> None:
    """Assigns an instance of a run to the calling thread."""

def opened() -> bool:
    """Whether the calling thread has opened the instance that was assigned to it."""

def unclosed() -> bool:
    """Whether the instance of the calling thread is open."""

def abandon(raised: BaseException) -> None:
    """Ends the instance of the calling thread, if it is still open, as ``with`` does after an exception."""

class Path:
    """A way to one other program, by which messages go without a run.

    ``Path("cluster.example:4711", "mesh")`` opens a path to the first of these addresses (``host:port``, or several
    with commas) where a program listens with the same key. ``name`` tells that program which path it is. ``key`` has 64
    hexadecimal digits; without ``key`` and ``key_file``, the environment variable TITIN_PATH_KEY names the file that
    ``titin path key`` has made.

    The settings hold for both ends; for 0 titin, or the operating system, chooses: the number of ``streams`` over which
    large messages are spread, ``pacing`` in bytes per second, and the buffers of each stream in bytes. Opening waits
    for the other program for at most ``patience`` seconds.

    A path to another host is encrypted. After a cut of the line it goes on at whichever of the addresses answers; after
    ``outage`` seconds without the other host it is lost. On this host (a loopback address) it is a plain connection.
    ``session:host:port`` and ``tcp:host:port`` choose. ``relay:site/host:port`` is at another site.

    Raises :class:`titin.UsageError` without a usable key, and :class:`titin.ConnectionFailed` if the path does not
    open.

    Several threads may call: calls that send are done one after the other, and so are calls that receive. The forms
    that begin with ``i`` do not wait: they return a :class:`Request`. After :class:`titin.Timeout`,
    :class:`titin.TypeMismatch`, :class:`titin.MessageLost` and Ctrl-C the path goes on. A path that is dropped without
    :meth:`close` waits for at most 10 s until the other end has all messages.
    """

    def __new__(
        cls,
        addresses: str,
        name: str = "",
        *,
        key: str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        streams: int = 0,
        pacing: int = 0,
        send_buffer: int = 0,
        receive_buffer: int = 0,
        patience: float = 60.0,
        outage: float = 60.0,
    ) -> Self: ...
    @property
    def name(self) -> str:
        """The name that the opening program has given."""

    @property
    def streams(self) -> int:
        """The number of streams that carry large messages of this end."""

    def statistics(self) -> dict[str, float]:
        """What this end of the path has carried since it was opened, and how, as a dict.

        ``time`` (seconds), ``messages_sent``, ``bytes_sent``, ``messages_received``, ``bytes_received``, ``send_rate``
        and ``receive_rate`` (bytes per second of that time), ``waited`` (seconds for which calls have waited; several
        threads add up), ``round_trip`` (seconds, as the system has averaged it), ``retransmissions`` (packets),
        ``pacing`` (the most bytes per second that this end sends; 0 without a limit), ``send_buffer`` and
        ``receive_buffer`` (of a stream, in bytes, as the system has them), and ``piece`` (the bytes of a piece, if they
        were set; 0 if titin chooses). NaN stands for what the system does not measure.
        """

    def set_streams(self, streams: int) -> None:
        """Has this end send large messages by at most so many streams (1 to 256) from now on; 0: titin chooses.

        Streams that are missing are opened, and carry messages as soon as they are there, as :attr:`streams` tells.
        The other end sends by as many as it has set, or by all that are open if titin chooses for it.
        """

    def set_piece(self, bytes: int) -> None:
        """Has this end send large messages in pieces of so many bytes (1 KiB to 1 MiB) from now on; 0: titin chooses.

        Where several streams carry a message, each carries pieces of it.
        """

    def set_pacing(self, rate: int) -> None:
        """Has this end send at most so many bytes per second from now on; 0 is for no limit."""

    def set_buffers(self, send: int = 0, receive: int = 0) -> None:
        """Sets the sizes of each stream's buffers at this end, in bytes; 0 leaves a size as it is."""

    def send(self, data: Any, *, timeout: float | None = None) -> None:
        """Sends an array as one message: an array of NumPy, or any object with a buffer, such as bytes.

        Waits while 64 MiB or 1024 messages are on their way that the other program has not received. Once the call has
        returned, the array may be changed. A message whose time is over is given up.

        Raises :class:`titin.Timeout`, :class:`titin.MessageLost` if the other program has dropped an earlier message,
        :class:`titin.PortClosed` if it has closed the path, and :class:`titin.PeerLost`.
        """

    def receive(self, *, timeout: float | None = None) -> NDArray[Any]:
        """The next message, an array of any type and shape. It is read-only; work on a copy.

        A call whose time is over loses nothing.

        Raises :class:`titin.Timeout`, :class:`titin.MessageLost` if the sender has given up in the middle of the
        message, or if the other program drops an earlier message of this one while the call waits,
        :class:`titin.PortClosed` behind the last message, and :class:`titin.PeerLost`.
        """

    def receive_into(self, buffer: Any, *, timeout: float | None = None) -> None:
        """Receives the next message into an array of the program, whose type and shape must be those of the message.

        Raises as :meth:`receive`, and :class:`titin.TypeMismatch` for another message, which is dropped.
        """

    def send_parts(self, parts: Sequence[Any], *, timeout: float | None = None) -> None:
        """Sends the bytes of several contiguous arrays as one message. Raises as :meth:`send`."""

    def receive_parts(self, parts: Sequence[Any], *, timeout: float | None = None) -> int:
        """Receives the bytes of the next message into several contiguous arrays, one after the other.

        The message may be smaller than all of them. Returns its number of bytes. Raises as :meth:`receive_into`.
        """

    def exchange(self, data: Any, *, timeout: float | None = None) -> NDArray[Any]:
        """Sends an array and returns the next message, both at once: neither waits for the other.

        Raises as :meth:`send` and :meth:`receive`. If only the sending fails, the received message is there for the
        next call that receives.
        """

    def cycle(self, to: Path, *, keep: bool = True, timeout: float | None = None) -> NDArray[Any] | None:
        """Receives the next message and passes it on to another path, piece by piece as the pieces come in.

        Returns the message; without ``keep`` it only passes, and memory for a few pieces is enough. In a ring, where
        each program also sends a message of its own, keep the messages: one that only passes waits for that send. A
        cycle that ends in the middle of the message drops it: both other programs get :class:`titin.MessageLost`.
        Raises as :meth:`receive`, and as :meth:`send` of ``to``.
        """

    def relay(self, other: Path, *, timeout: float | None = None) -> None:
        """Passes all messages on, both ways, until the other program of one of the two paths closes it.

        No other call uses the two paths meanwhile. Barriers do not go on. Raises as :meth:`cycle`.
        """

    def isend(self, data: Any) -> Request:
        """The non-blocking form of :meth:`send`: the array must not change until the call is done.

        An array with gaps is packed at once. The call goes on where the program drops its request.
        """

    def isend_parts(self, parts: Sequence[Any]) -> Request:
        """The non-blocking form of :meth:`send_parts`. The call goes on where the program drops its request."""

    def ireceive(self) -> Request:
        """The non-blocking form of :meth:`receive`."""

    def ireceive_into(self, buffer: Any) -> Request:
        """The non-blocking form of :meth:`receive_into`. The elements are there when the request says so."""

    def ireceive_parts(self, parts: Sequence[Any]) -> Request:
        """The non-blocking form of :meth:`receive_parts`."""

    def ibarrier(self) -> Request:
        """The non-blocking form of :meth:`barrier`."""

    def icycle(self, to: Path, *, keep: bool = True) -> Request:
        """The non-blocking form of :meth:`cycle`."""

    def irelay(self, other: Path) -> Request:
        """The non-blocking form of :meth:`relay`."""

    def barrier(self, *, timeout: float | None = None) -> None:
        """Waits until the other program has come to its barrier as often as this one. Raises as :meth:`send`."""

    def flush(self, *, timeout: float | None = None) -> None:
        """Waits until the other program has received all messages that this one has sent. Raises as :meth:`send`."""

    def close(self, *, timeout: float | None = None) -> None:
        """Waits until the other end has all messages, and closes the path at both ends. A second call does nothing."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, raised: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

class Request:
    """A non-blocking call on a path.

    The call goes on while the program computes; a thread of titin carries it on. On a path, calls that send are done
    one after the other in their order, the blocking ones among them, and so are calls that receive. The request holds
    the arrays of the call. ``await request`` in asyncio waits and returns as :meth:`wait`; cancelling the await cancels
    the call (``asyncio.shield`` keeps it). A request that is dropped is cancelled, but for calls that send: these go
    on, and their errors are not told.
    """

    def test(self) -> bool:
        """Whether the call is done. Raises the error of a call that has failed, at each test and wait."""

    def wait(self, *, timeout: float | None = None) -> Any:
        """Waits until the call is done. Returns what the blocking form returns.

        That is the message of ``ireceive`` and ``icycle``, the number of bytes of ``ireceive_parts``, and else None.

        Raises :class:`titin.Timeout`, after which the call goes on, and the error of the call.
        """

    def cancel(self) -> bool:
        """Ends the call if it is not done; returns whether it was ended. Afterwards its arrays are the program's again.

        A receive loses nothing: the next one goes on with the message. A send gives its message up.
        """

    def _notify(self, ready: Ready, number: int) -> None:
        """Puts the number on the list when the call is done; may come early."""

    def __await__(self) -> Generator[Any, None, Any]: ...

def wait_any(requests: Sequence[Request], *, timeout: float | None = None) -> int:
    """Waits until one of these calls is done, on one path or on several; returns its place.

    Whether the call has failed, its request says. A call that is done is found again: take it off the list. Raises
    :class:`titin.Timeout`, and :class:`titin.UsageError` for no requests.
    """

class PathListener:
    """A port where other programs open any number of paths.

    ``PathListener("0.0.0.0:4711")`` listens at all networks of the host; for port 0 the system chooses a port. The key
    is as for :class:`Path`. Raises :class:`titin.UsageError` without a usable key, and :class:`titin.ConnectionFailed`
    if the place is not known or in use.
    """

    def __new__(
        cls, address: str, *, key: str | None = None, key_file: str | os.PathLike[str] | None = None
    ) -> Self: ...
    @property
    def address(self) -> str:
        """The address at which the listener was started, with its port."""

    def accept(self, *, timeout: float | None = None) -> Path:
        """The next path that another program has opened. Paths outlive the listener. Raises :class:`titin.Timeout`."""

    def close(self) -> None:
        """Frees the port, and ends the paths that were not accepted. Accepted paths live on. ``with`` does so, too."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, raised: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
