"""Instances for asyncio: thousands of instances on the one thread of an event loop.

The calls that wait are awaited; otherwise they are the calls of :class:`titin.Instance`::

    import titin.aio

    async def micro(name):
        async with titin.aio.Instance(f_init=["initial"], o_f=["final"], name=name) as instance:
            while await instance.reuse():
                message = await instance.receive("initial")
                await instance.send("final", message.data * 2, timestamp=message.timestamp)

No thread waits for an instance. Where a call cannot go on, its task gives way until something comes for the instance.
All instances of an event loop share one descriptor, which the loop polls.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, Self, TypeVar
from weakref import WeakKeyDictionary, WeakSet, ref

from numpy.typing import DTypeLike, NDArray
from titin import _core
from titin.data import Scale
from titin.errors import Error, UsageError

__all__ = ["Instance"]

_T = TypeVar("_T")
#: Stands for a default that the caller has not given.
_MISSING = object()


@dataclass
class _Assignment:
    """The instance that a host has started a task for, and the run of that instance."""

    name: str
    manager: str
    opened: ref[Instance] | None = None
    """The instance, once it has joined the run."""
    task: asyncio.Task[Any] | None = None
    """The task that the host has made for the instance."""

    def unclosed(self) -> Instance | None:
        """The instance, if it has joined the run and has not left."""
        instance = None if self.opened is None else self.opened()
        return None if instance is None or instance.closed else instance


_assignment: ContextVar[_Assignment | None] = ContextVar("titin.aio.assignment", default=None)
#: Tasks that a host has made. A task of a host belongs to one instance alone, or to none.
_hosts: WeakSet[asyncio.Task[Any]] = WeakSet()

#: Seconds for which a call waits before the search for deadlocks looks at the call: the larger of `_PATIENCE` and
#: `_PATIENCE_EACH` for each open instance. The core reports a call that has waited for 0.1 s.
_PATIENCE = 0.1
_PATIENCE_EACH = 0.001


#: The key of the call that begins a use, among the names of ports.
_REUSE = "reuse()"


def _name(port: str | _core.Port) -> str:
    """The name of a port; "" for an argument that is no port, which the call itself refuses."""
    return (port if isinstance(port, str) else getattr(port, "name", "")).removesuffix("[]")


class _LoopWaiters:
    """The calls that wait on an event loop, by the numbers of their instances."""

    _known: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopWaiters]] = WeakKeyDictionary()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.ready = _core.Ready()
        # The loop owns this object by its reader. A reference to the loop from here would keep both for ever.
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}
        self._numbers = 0
        self.instances: WeakSet[Instance] = WeakSet()
        """The open instances of the loop."""
        self.callers: set[asyncio.Task[Any] | None] = set()
        """Tasks whose calls are pending."""
        self._free: bool | None = None
        loop.add_reader(self.ready.fileno(), self._wake)

    @classmethod
    def here(cls) -> _LoopWaiters:
        """The waiters of the running loop."""
        loop = asyncio.get_running_loop()
        known = cls._known.get(loop)
        if known is None:
            known = cls._known[loop] = cls(loop)
        return known

    def number(self) -> int:
        """The number of a new instance."""
        self._numbers += 1
        return self._numbers

    def next(self, number: int) -> asyncio.Future[None]:
        """A future that is done when the instance of this number can go on."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(number, []).append(future)
        return future

    def forget(self, number: int) -> None:
        """Forgets the futures of a number for which nothing waits any more."""
        self._waiting.pop(number, None)

    def patience(self) -> float:
        """Seconds for which a call waits before the search for deadlocks looks at the call."""
        return max(_PATIENCE, _PATIENCE_EACH * len(self.instances))

    def may_act(self, assignment: _Assignment | None) -> bool:
        """Whether some task waits for no instance, and so may still act on the assigned instance."""
        host = assignment.task if assignment is not None else None
        if host is not None and host not in self.callers and not host.done():
            return True
        if self._free is None:
            # Thousands of calls may ask in one turn of the loop, and each answer takes a look at thousands of tasks. So
            # the answer is kept for the turn.
            loop = asyncio.get_running_loop()
            self._free = any(task not in _hosts for task in asyncio.all_tasks(loop) - self.callers)
            loop.call_soon(self._forget)
        return self._free

    def _forget(self) -> None:
        self._free = None

    def _wake(self) -> None:
        while (number := self.ready.next()) is not None:
            for future in self._waiting.pop(number, ()):
                if not future.done():
                    future.set_result(None)


async def _outcome(request: _core.Request) -> Any:
    """What ``await request`` returns, for a non-blocking call on a path."""
    waiters = _LoopWaiters.here()
    number = waiters.number()
    going_on = waiters.next(number)
    request._notify(waiters.ready, number)
    try:
        while not request.test():
            await going_on
            going_on = waiters.next(number)
    except asyncio.CancelledError:
        # A call that is done all the same has its outcome: a message would be lost.
        if request.cancel():
            raise
    finally:
        waiters.forget(number)
    return request.wait()


class Instance:
    """One running copy of a program, as part of a run; for use in ``async with``, on one event loop.

    Arguments, calls and errors are those of :class:`titin.Instance`. Several tasks may call at once, on different ports
    or slots. Two calls at once on one port or slot are a mistake (:class:`titin.UsageError`). So are two calls of
    ``reuse``, or ``reuse`` beside a call on an F_INIT port. A call that is cancelled has not happened, except ``send``:
    the message may have gone to some receivers already, so the port cannot be used any more. Cancelling ``open`` fails
    the run, if the manager has heard of the instance.
    """

    def __init__(
        self,
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
    ) -> None:
        given = self._assignment = _assignment.get()
        self._given: dict[str, Any] = {
            "f_init": f_init,
            "o_i": o_i,
            "s": s,
            "o_f": o_f,
            "name": name or (given and given.name),
            "manager": manager or (given and given.manager),
            "unchecked": unchecked,
            "checks": checks,
            "overlays": overlays,
        }
        self._opened: _core.Instance | None = None
        self._waiters: _LoopWaiters | None = None
        self._number = 0
        self._watched = True
        self._cut: set[str] = set()
        self._initial: list[str] | None = None
        """Names of the F_INIT ports, from the first ``reuse`` on."""
        self._busy: dict[str, set[int | None]] = {}
        """Slots with a pending call, by port; None stands for the whole port."""

    async def open(self) -> Self:
        """Joins the run. ``async with`` does so."""
        self._waiters = _LoopWaiters.here()
        self._number = self._waiters.number()
        opening = _core.Opening(self._waiters.ready, self._number, **self._given)
        self._opened = await self._made(opening.end, opening.cancel)
        self._waiters.instances.add(self)
        if self._assignment is not None:
            self._assignment.opened = ref(self)
        return self

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave()
        if raised is not None:
            self._light.__exit__(kind, raised, traceback)
        elif not self._light.closed:
            try:
                await self.close()
            except BaseException as error:
                self._light.__exit__(type(error), error, error.__traceback__)
                raise

    async def reuse(self) -> bool:
        """Begins the next use of the submodel; False when there is none."""
        if _REUSE in self._busy:
            raise UsageError("two calls of reuse() at once: one task begins a use, and tells the others")
        if self._initial is None:
            self._initial = [name for name, port in self._light.ports.items() if port.operator == "f_init"]
        return await self._made(self._light.reuse, self._light._cancel, _REUSE, *self._initial)

    async def send(
        self,
        port: str | _core.Port,
        data: Any = None,
        *,
        timestamp: float,
        next_timestamp: float | None = None,
        slot: int | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Sends a message. The data may be changed once the call has been awaited."""
        name = _name(port)
        if name in self._cut:
            raise UsageError(f"an earlier send on port '{name}' was cancelled halfway, so it cannot be used any more")
        try:
            await self._made(
                lambda: self._light.send(
                    port, data, timestamp=timestamp, next_timestamp=next_timestamp, slot=slot, settings=settings
                ),
                lambda: self._light._cancel(port, slot),
                name,
                slot=slot,
            )
        except asyncio.CancelledError:
            self._cut.add(name)
            raise

    def loan(
        self,
        port: str | _core.Port,
        shape: int | Iterable[int],
        dtype: DTypeLike,
        *,
        slot: int | None = None,
        order: Literal["C", "F"] = "C",
    ) -> NDArray[Any]:
        """Memory for an array that is sent without a copy."""
        return self._light.loan(port, shape, dtype, slot=slot, order=order)

    async def receive(
        self, port: str | _core.Port, *, slot: int | None = None, timeout: float | None = None, default: Any = _MISSING
    ) -> _core.Message:
        """Receives a message, at most ``timeout`` seconds from now."""
        given = {} if default is _MISSING else {"default": default}
        return await self._made(
            lambda: self._light.receive(port, slot=slot, timeout=timeout, **given),
            lambda: self._light._cancel(port, slot),
            _name(port),
            slot=slot,
        )

    async def receive_any(
        self,
        *ports: str | _core.Port | list[str] | list[_core.Port] | tuple[str | _core.Port, ...],
        timeout: float | None = None,
    ) -> tuple[str, int | None, _core.Message]:
        """Receives the next message of any of these ports; gives the port's name, the slot, and the message.

        The ports are given one by one, or in a list or tuple.
        """
        every = [port for given in ports for port in (given if isinstance(given, list | tuple) else [given])]
        return await self._made(
            lambda: self._light.receive_any(*every, timeout=timeout),
            lambda: self._light._cancel(every[0]),
            *map(_name, every),
        )

    async def receive_into(
        self, port: str | _core.Port, buffer: Any, *, slot: int | None = None, timeout: float | None = None
    ) -> _core.Message:
        """Receives an array into memory of the program's own."""
        return await self._made(
            lambda: self._light.receive_into(port, buffer, slot=slot, timeout=timeout),
            lambda: self._light._cancel(port, slot),
            _name(port),
            slot=slot,
        )

    def try_receive(self, port: str | _core.Port, *, slot: int | None = None) -> _core.Message | None:
        """Receives a message that has come already; None if no message has come."""
        self._free(_name(port), slot)
        return self._light.try_receive(port, slot=slot)

    async def close(self) -> None:
        """Ends the instance's part in the run, once the receivers hold or have dropped every message sent."""
        self._leave()
        await self._made(self._light.close, self._light._cancel)

    def port(self, name: str | _core.Port) -> _core.Port:
        """The port with this name."""
        return self._light.port(name)

    @property
    def ports(self) -> dict[str, _core.Port]:
        """All ports by name."""
        return self._light.ports

    def setting(self, name: str, kind: Any = None, default: Any = _MISSING) -> Any:
        """The value of a setting, as :meth:`titin.Instance.setting` gives it."""
        given = {} if default is _MISSING else {"default": default}
        return self._light.setting(name, kind, **given)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings known for this instance by full name, with the overlay in force."""
        return self._light.settings

    @property
    def overlay(self) -> dict[str, Any]:
        """The settings overlay in force alone."""
        return self._light.overlay

    def will_stop(self, timestamp: float) -> bool:
        """Whether the step that begins at this time would pass the end of the use."""
        return self._light.will_stop(timestamp)

    @property
    def scale(self) -> Scale:
        """The scales that the description gives for this component."""
        return self._light.scale

    @property
    def name(self) -> str:
        """Name of the instance: ``macro[3]``."""
        return self._light.name

    @property
    def workdir(self) -> Path:
        """The directory that was current when the instance was opened."""
        return self._light.workdir

    @property
    def time_unit(self) -> str:
        """The unit of timestamps, as the description has it: ``s`` unless told."""
        return self._light.time_unit

    @property
    def closed(self) -> bool:
        """Whether the instance is closed."""
        return self._light.closed

    def log(self, level: Any, text: str) -> None:
        """Sends a record to the run's log."""
        self._light.log(level, text)

    def skip_checks(self, reason: str) -> None:
        """Switches the check of the order of calls off from here on."""
        self._light.skip_checks(reason)

    def fail(self, text: str) -> None:
        """Fails the run, with this instance as the culprit. Close the instance afterwards."""
        self._light.fail(text)

    def region(self, name: str) -> _core.Region:
        """A region of the program in the profile."""
        return self._light.region(name)

    def __repr__(self) -> str:
        return f"<titin.aio.Instance {self._opened!r}>"

    @property
    def _light(self) -> _core.Instance:
        if self._opened is None:
            raise UsageError("the instance is not open: use it in `async with`, or await its open()")
        return self._opened

    async def _made(
        self, call: Callable[[], _T], give_up: Callable[[], None], *ports: str, slot: int | None = None
    ) -> _T:
        """Makes a call, and makes it again each time that the instance can go on, until the call has a result.

        Calls ``give_up`` if the wait ends without a result. The call uses these ports, or this slot of the ports. Until
        the call ends no other task may use them.
        """
        for port in ports:
            self._free(port, slot)
        try:
            return call()
        except _core.Pending:
            pass
        for port in ports:
            self._busy.setdefault(port, set()).add(slot)
        try:
            return await self._later(call, give_up)
        finally:
            for port in ports:
                self._busy[port].discard(slot)
                if not self._busy[port]:
                    del self._busy[port]

    def _free(self, port: str, slot: int | None) -> None:
        """Refuses a call on a port or slot on which another task's call is pending."""
        busy = self._busy.get(port)
        if busy and (slot is None or slot in busy or None in busy):
            text = "calls may be made in several tasks, but each on a port, or a slot, of its own"
            raise UsageError(f"two calls at once on port '{port}': {text}")

    async def _later(self, call: Callable[[], _T], give_up: Callable[[], None]) -> _T:
        """Makes a pending call again and again, until it has a result."""
        assert self._waiters is not None
        since = time.monotonic()
        while True:
            caller = asyncio.current_task()
            self._waiters.callers.add(caller)
            try:
                await self._waiters.next(self._number)
                self._watch(since)
            except BaseException:
                # The instance may be closed by now.
                with suppress(Error):
                    give_up()
                raise
            finally:
                self._waiters.callers.discard(caller)
            try:
                return call()
            except _core.Pending:
                continue

    def _leave(self) -> None:
        if self._waiters is not None:
            self._waiters.instances.discard(self)

    def _watch(self, since: float) -> None:
        """Takes the instance out of the search for deadlocks if another task may still act on it."""
        if not self._watched or self._opened is None or self._waiters is None:
            return
        if time.monotonic() - since >= self._waiters.patience() and self._waiters.may_act(self._assignment):
            self._watched = False
            # The instance may be closed by now.
            with suppress(Error):
                self._opened._skip_deadlocks()
