"""The errors of titin: a class for each kind of error that a caller can act on.

Each class stands for an error number of the C interface, so every language has the same errors; ``docs/errors.md`` has
the table.
"""

import os
import traceback

# Most lines of a traceback in the run's report.
LAST_LINES = 12
# Frames that tell the user nothing: frames of this package, and of Python's import.
_NOT_THEIRS = (os.path.join(os.path.dirname(__file__), ""), "<frozen ")


class Error(Exception):
    """The base of all errors of titin. The text says what failed, why, and what to do."""


class UsageError(Error, ValueError):
    """The call itself is wrong: an unknown port, a slot out of range."""


class CallOrderError(Error):
    """The call is not in its place in the submodel execution loop."""


class SettingError(Error, ValueError):
    """A setting is missing, or does not have the type or unit that the program asked for."""


class TypeMismatch(Error, TypeError):
    """The data do not have a type or shape that can be sent, or that the program asked for."""


class Timeout(Error, TimeoutError):
    """The time given to the call is over. The instance can still be used."""


class PortClosed(Error):
    """No more messages will come, as the port's sender has finished. The instance can still be used."""


class PeerLost(Error):
    """Another instance has failed, or cannot be reached. The text names it."""


class Deadlock(Error):
    """Instances wait for each other in a cycle. The text shows the cycle."""


class ConnectionFailed(Error, ConnectionError):
    """The run cannot be joined, the manager is gone, or a link brings bytes that cannot be understood."""


class OutOfMemory(Error, MemoryError):
    """There is no memory for a message."""


class Forked(Error):
    """The instance belongs to the parent process, from which this process was forked."""


class InternalError(Error):
    """An error inside titin. Please report it."""


class FilterError(Error):
    """A filter of the user's has failed, or cannot be found."""


class Closed(Error):
    """The instance is closed, or has failed before."""


class Evicted(Error):
    """The sender of a field does not keep the version asked for. The instance can still be used."""


class MessageLost(Error):
    """A message of a path was dropped by its receiver, or given up by its sender. The path can still be used."""


class MemberFailed(Error):
    """A member of an ensemble has failed, and the run goes on without it. The instance can still be used.

    ``member`` is the name of the failed instance, and ``slot`` the slot of the port to which it is connected; None on a
    port without slots. The text says why it failed.
    """

    member: str = ""
    slot: int | None = None


BY_NUMBER = (
    Error,
    UsageError,
    CallOrderError,
    SettingError,
    TypeMismatch,
    Timeout,
    PortClosed,
    PeerLost,
    Deadlock,
    ConnectionFailed,
    OutOfMemory,
    Forked,
    InternalError,
    KeyboardInterrupt,
    FilterError,
    Closed,
    Error,  # 16 is no error
    Evicted,
    MessageLost,
    MemberFailed,
)


def is_echo(raised: BaseException) -> bool:
    """Whether an exception is only the consequence of a failure elsewhere."""
    return isinstance(raised, PeerLost | Deadlock)


def rank(raised: BaseException) -> tuple[bool, bool, bool]:
    """How likely an exception is only the consequence of another: the order of ``first_error`` in capi/host.rs."""
    # An instance that comes late to a failed run finds the manager gone. The error of this instance says least.
    return (isinstance(raised, ConnectionFailed), is_echo(raised), isinstance(raised, PortClosed))


def add_hint(raised: BaseException) -> None:
    """Adds advice to an exception of NumPy about an array that may not be written."""
    if isinstance(raised, ValueError) and not isinstance(raised, Error) and "read-only" in str(raised):
        raised.add_note(
            "titin: received arrays are read-only, and loans once they were sent; to change one, take a copy: "
            "message.data.copy()"
        )


def exits(raised: SystemExit) -> str:
    """The call of ``sys.exit`` that has raised the exception, as the user wrote the call."""
    return f"sys.exit({'' if raised.code is None else repr(raised.code)})"


def last_lines(
    raised: BaseException, exited: str = "it called {} with its instance open: leave the with block, or close it, first"
) -> str:
    """An exception as the run's report shows it: its text, then the frames, innermost last.

    ``exited`` is the text for a SystemExit.
    """
    what = "".join(traceback.format_exception_only(raised)).strip()
    if isinstance(raised, SystemExit):
        what = exited.format(exits(raised))
    frames = traceback.extract_tb(raised.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(_NOT_THEIRS)]
    where = "".join(traceback.format_list(theirs)).rstrip().splitlines()
    return "\n".join([what, *where[-LAST_LINES:]])
