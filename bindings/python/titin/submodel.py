"""A frame for submodels: the submodel execution loop over four methods of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from titin import _core
from titin.errors import UsageError


class Submodel:
    """A submodel with a method for each operator; :meth:`run` calls them in the order of the submodel execution loop.

    A derived class names its ports, and defines the methods that the submodel needs::

        class Reaction(titin.Submodel):
            f_init = "initial"
            o_f = "final"

            def init(self):
                message = self.instance.receive("initial")
                self.time, self.u = message.timestamp, message.data.copy()
                self.dt = self.instance.setting("dt", float)

            def solve(self):
                self.u += self.dt * self.u * (1 - self.u)
                self.time += self.dt

            def finish(self):
                self.instance.send("final", self.u, timestamp=self.time)

        Reaction().run()

    The class is only this loop over :class:`titin.Instance`::

        while instance.reuse():
            init()
            while not stops():
                observe()
                solve()
            finish()
    """

    f_init: str | Sequence[str] | None = None
    """Ports by operator, as :class:`titin.Instance` takes them; None for the ports of the description."""
    o_i: str | Sequence[str] | None = None
    s: str | Sequence[str] | None = None
    o_f: str | Sequence[str] | None = None

    instance: _core.Instance
    """The instance, while :meth:`run` runs."""
    time: float
    """Simulated time of the state: 0 where a use begins, unless ``init`` sets the time; ``solve`` moves the time on."""

    def init(self) -> None:
        """F_INIT: receives the initial state of a use, and sets ``time``."""

    def observe(self) -> None:
        """O_I: sends an intermediate observation, at the beginning of each step."""

    def solve(self) -> None:
        """S: receives, and moves the state and ``time`` on by a step."""

    def finish(self) -> None:
        """O_F: sends the final observation of a use."""

    def stops(self) -> bool:
        """Whether the steps of a use are done, by the settings or scales; see :meth:`titin.Instance.will_stop`."""
        self._stops_by_time = True
        return self.instance.will_stop(self.time)

    def run(self, **options: Any) -> None:
        """Opens the instance, runs all uses, closes the instance. Can be a function of :func:`titin.run`.

        ``options``: the arguments of :class:`titin.Instance` except the ports: ``comm`` for a parallel program,
        ``unchecked``, ``checks``, ``overlays``, ``name``, ``manager``.
        """
        self._stops_by_time = False
        f_init, o_i, s, o_f = self.f_init, self.o_i, self.s, self.o_f
        with _core.Instance(f_init=f_init, o_i=o_i, s=s, o_f=o_f, **options) as self.instance:
            while self.instance.reuse():
                self.time = 0.0
                self.init()
                while not self.stops():
                    begin = self.time
                    self.observe()
                    self.solve()
                    if self._stops_by_time and not self.time > begin:
                        raise UsageError(
                            f"solve() of {type(self).__name__} has left the time at {self.time}, so the steps would "
                            "never end: add the timestep to self.time there, or say in a stops() when they do"
                        )
                self.finish()
