"""A plugin of pytest, to test one implementation of a model alone: the fixture ``muscle3_tester``.

A test plays the part of everything that the implementation is connected to: it sends on the implementation's receiving
ports, and receives what comes from its sending ports. Two instances in the process of the test do so. The parent is
joined to the F_INIT and O_F ports, as a model that calls the implementation would be; the sibling to the O_I and S
ports, as one that steps together with it.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pytest

if TYPE_CHECKING:
    from libmuscle.instance import Instance
    from libmuscle.message import Message
    from libmuscle.serving import Serving

__all__ = ["ImplementationTester", "MuscleTester", "muscle3_tester"]

_MODEL = "muscle3_test_model"
_PARENT, _SIBLING = "muscle3_tester_parent", "muscle3_tester_sibling"
_SETTINGS = "muscle_settings_in"
#: The ports of the parent that begin a use of the implementation without F_INIT ports, and of the sibling.
_BEGIN, _BEGIN_SIBLING = "begin_implementation", "begin_sibling"


@pytest.fixture
def muscle3_tester(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MuscleTester]:
    """A :class:`MuscleTester`; the end of the test ends the implementation, and a failure shows the run's report."""
    tester = MuscleTester(tmp_path / "run_dir")
    try:
        with tester:
            yield tester
    finally:
        if tester.report:
            request.node.add_report_section("teardown", "muscle3 tester log", tester.report)


class MuscleTester:
    """Starts implementations for tests; to be used in a ``with`` block. ``run_dir``: where the files of the run go."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.implementation_tester: ImplementationTester | None = None
        self._serving: Serving | None = None
        self._timeout = 0.0

    @property
    def report(self) -> str:
        """What titin has said about the run."""
        return self._serving.said if self._serving is not None else ""

    def start_implementation(
        self, ymmsl_source: str | Path, implementation: str, *, default_timeout: float = 60
    ) -> ImplementationTester:
        """Starts a program or model by its name in a description, a text or a file, and joins all of its ports.

        ``default_timeout``: the seconds after which a receive gives up, and within which the programs have to come, and
        to end at the end of the test.
        Raises ValueError if the description has no such implementation, RuntimeError if the run cannot begin.
        """
        import ymmsl
        from ymmsl import v0_2

        from libmuscle.serving import Serving

        configuration = ymmsl.load_as(v0_2.Configuration, ymmsl_source)
        known = {str(name): one for name, one in [*configuration.programs.items(), *configuration.models.items()]}
        if implementation not in known:
            raise ValueError(f"No implementation '{implementation}' found in the yMMSL; it has {', '.join(known)}")
        ports = {str(port.name): port.operator.name.lower() for port in known[implementation].ports.values()}
        timelines = {str(port.name): port.timeline for port in known[implementation].ports.values()}

        self.run_dir.parent.mkdir(parents=True, exist_ok=True)
        around = self.run_dir.with_name("test_config.ymmsl")
        around.write_text(json.dumps(_description(implementation, ports, timelines, default_timeout)))
        text, file = ("", str(ymmsl_source)) if isinstance(ymmsl_source, Path) else (ymmsl_source, "-")
        self._timeout = default_timeout
        testers = [_PARENT] + [_SIBLING] * _has_steps(ports)
        self._serving = Serving(
            ["run", "--by-hand", ",".join(testers), "--run-dir", str(self.run_dir), "-m", _MODEL, file, str(around)],
            text,
        )
        self.implementation_tester = ImplementationTester(default_timeout, self._serving.location, ports)
        return self.implementation_tester

    def cleanup(self) -> None:
        """Ends the implementation. Raises RuntimeError if its run has failed."""
        tester, self.implementation_tester = self.implementation_tester, None
        if self._serving is None or tester is None:
            return
        watchdog = threading.Timer(self._timeout, self._serving.terminate)
        watchdog.start()
        try:
            with self._serving:
                if tester.cleanup():
                    self._serving.end()
        except RuntimeError as raised:
            if watchdog.finished.is_set():
                raise RuntimeError(
                    f"The implementation had not ended {self._timeout} s after the test, and was ended: see where it "
                    f"waits or loops.\n{raised}"
                ) from raised
            raise
        finally:
            watchdog.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None and self.implementation_tester is not None:
            self.implementation_tester.give_up("the test has failed")
        self.cleanup()


class ImplementationTester:
    """Sends to an implementation that is tested, and receives from it, by the names of the implementation's ports.

    Messages on the F_INIT ports begin a use; the next message on such a port, or slot of it, begins the next one. After
    an error the run is over.
    """

    def __init__(self, default_timeout: float, muscle_manager_address: str, ports: dict[str, str]) -> None:
        self._timeout = default_timeout
        self._over = False
        of = {
            operator: [name for name in ports if ports[name] == operator] for operator in ("f_init", "o_i", "s", "o_f")
        }
        self._begins = set(of["f_init"]) or {_BEGIN}
        self._sent: set[tuple[str, int | None]] = set()
        """The F_INIT ports and slots to which a message was sent for the present use."""
        self._sibling: Instance | None = None
        sends = [*sorted(self._begins), *[_BEGIN_SIBLING] * _has_steps(ports)]
        self._parent = _join(_PARENT, muscle_manager_address, sends, of["o_f"])
        self._by_port = dict.fromkeys([*self._begins, *of["o_f"]], self._parent)
        if _has_steps(ports):
            self._sibling = _join(_SIBLING, muscle_manager_address, of["s"], of["o_i"])
            self._by_port |= dict.fromkeys([*of["s"], *of["o_i"]], self._sibling)
        self._parent.reuse_instance()
        if not of["f_init"]:
            self._send_settings(_BEGIN)

    def send(self, port_name: str, message: Message, slot: int | None = None) -> None:
        """Sends on a receiving port of the implementation.

        Raises ValueError for an unknown port, and RuntimeError if the implementation has failed.
        """
        with _GivesUp(self):
            port_name = _BEGIN if port_name == _SETTINGS else port_name
            instance = self._instance(port_name)
            if port_name in self._begins:
                self._begin(port_name, message.timestamp, slot)
            instance.send(port_name, message, slot)

    def receive(self, port_name: str, slot: int | None = None, *, timeout: float | None = None) -> Message:
        """Receives what the implementation sends on a port, for at most ``timeout`` seconds.

        Raises ValueError for an unknown port, and RuntimeError if nothing comes or the implementation has failed.
        """
        with _GivesUp(self):
            instance = self._instance(port_name)
            return instance._receive_within(port_name, slot, self._timeout if timeout is None else timeout)

    def cleanup(self) -> bool:
        """Ends the last use, and lets the implementation end; whether the run has gone well so far."""
        if self._over:
            return False
        with _GivesUp(self):
            for instance in self._instances():
                while instance.reuse_instance():
                    pass
            self._over = True
        return True

    def give_up(self, text: str) -> None:
        """Ends the run as failed, for this reason."""
        if not self._over:
            self._over = True
            for instance in self._instances():
                instance.error_shutdown(text)

    def _instances(self) -> Sequence[Instance]:
        return [self._parent] if self._sibling is None else [self._parent, self._sibling]

    def _instance(self, port_name: str) -> Instance:
        instance = self._by_port.get(port_name)
        if instance is None:
            ports = ", ".join(sorted(self._by_port.keys() - {_BEGIN}))
            raise ValueError(f"The implementation has no port named '{port_name}'. Available ports are: {ports}")
        if instance is self._sibling and not self._sent:
            raise RuntimeError(
                f"Cannot use port '{port_name}' before sending a message on the implementation's F_INIT ports."
            )
        return instance

    def _begin(self, port_name: str, timestamp: float, slot: int | None) -> None:
        """Begins a use if this message belongs to the next one: the sibling begins its own."""
        if not self._sent or (port_name, slot) in self._sent:
            self._sent.clear()
            if self._sibling is not None:
                self._send_settings(_BEGIN_SIBLING, timestamp)
                self._sibling.reuse_instance()
        self._sent.add((port_name, slot))

    def _send_settings(self, port_name: str, timestamp: float = 0.0) -> None:
        from libmuscle.message import Message

        message = Message(timestamp if math.isfinite(timestamp) else 0.0, None, {})
        if port_name == _BEGIN:
            self._begin(port_name, message.timestamp, None)
        self._parent.send(port_name, message)


class _GivesUp:
    """A block in which an error ends the tester's run."""

    def __init__(self, tester: ImplementationTester) -> None:
        self._tester = tester

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if raised is not None:
            self._tester.give_up(str(raised))


def _join(name: str, manager: str, sends: list[str], receives: list[str]) -> Instance:
    from libmuscle.instance import Instance

    return Instance._join(name, manager, {"o_i": sends, "s": receives})


def _has_steps(ports: dict[str, str]) -> bool:
    """Whether the implementation has ports for a sibling."""
    return not {"o_i", "s"}.isdisjoint(ports.values())


def _description(testee: str, ports: dict[str, str], timelines: dict[str, Any], timeout: float) -> dict[str, Any]:
    """The model around the implementation, and how long to wait for its programs."""
    mirrored = {"f_init": "o_i", "o_i": "s", "s": "o_i", "o_f": "s"}
    component = testee.rpartition(".")[2]
    components: dict[str, Any] = {component: {"description": "is tested", "implementation": testee, "ports": {}}}
    conduits: dict[str, str] = {}

    def add(owner: str, operator: str, name: str, timeline: Any = None) -> None:
        known = components.setdefault(owner, {"description": "is the test", "ports": {}})["ports"]
        into = known.setdefault(f"timeline {timeline[0]}", {}) if timeline else known
        into.setdefault(operator, []).append(name)

    def connect(sender: str, receiver: str) -> None:
        conduits[sender] = receiver

    for name, operator in ports.items():
        tester = _PARENT if operator in ("f_init", "o_f") else _SIBLING
        add(component, operator, name, timelines[name])
        add(tester, mirrored[operator], name, timelines[name])
        ends = f"{tester}.{name}", f"{component}.{name}"
        connect(*(ends if operator in ("f_init", "s") else ends[::-1]))
    if "f_init" not in ports.values():
        add(_PARENT, "o_i", _BEGIN)
        connect(f"{_PARENT}.{_BEGIN}", f"{component}.{_SETTINGS}")
    if _has_steps(ports):
        add(_PARENT, "o_i", _BEGIN_SIBLING)
        connect(f"{_PARENT}.{_BEGIN_SIBLING}", f"{_SIBLING}.{_SETTINGS}")
    return {
        "ymmsl_version": "v0.2",
        "models": {_MODEL: {"components": components, "conduits": conduits}},
        "titin": {"register_timeout": f"{timeout} s"},
    }
