"""The times of a model: its unit, timestamps, the end of a use, and when each port is used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Real

import titin
from titin.bmi.model import Model, ModelError
from titin.bmi.options import Options
from titin.bmi.units import UnitError, seconds

# A step may pass a time by this part of itself, and by the rounding error of a sum, as will_stop() has it.
_PART = 1e-6
_ROUNDED = 8 * 2.0**-52


class Clock:
    """The times of one use, in the model's unit but for timestamps."""

    def __init__(self, model: Model, options: Options, ports: Sequence[str], time_unit: str = "s") -> None:
        """``ports`` are those that are used in steps; ``time_unit`` is the unit of timestamps."""
        told = model.text("get_time_units") or options.time_units
        try:
            if not told:
                raise UnitError(
                    "get_time_units tells none; write it, or name the unit by --time-units (bmi_time_units)"
                )
            self._unit = seconds(told)
        except UnitError as error:
            raise ModelError(f"the unit of time of {model} is not known: {error}") from None
        self.unit = told
        self._model = model
        self._step: float | None = None
        self._scale = float(self._unit / _seconds_of_stamps(time_unit))
        self.start = model.number("get_start_time")
        self.now = model.number("get_current_time")
        self._base: float | None = None
        self._begin = self.now
        self.end = self._end(options)
        self._every = self._intervals(options, ports)
        self._used = dict.fromkeys(self._every, 0)
        # Without such ports a model that has no steps goes to its end at once.
        self._step = self._told_step(needed=False)
        self._steps = any(port not in self._every for port in ports) or (not ports and self._step is not None)
        self._step = self._told_step(needed=self._steps)

    def begin(self, timestamp: float) -> None:
        """Sets the timestamp of the start, from the F_INIT messages."""
        self._base = timestamp

    def stamp(self, time: float) -> float:
        """The timestamp of a time of the model."""
        return time * self._scale if self._base is None else self._base + (time - self.start) * self._scale

    def is_over(self) -> bool:
        """Whether the use has come to its end."""
        return self._is_at(self.end)

    def is_due(self, port: str) -> bool:
        """Whether a port is used in this step."""
        return port not in self._every or self._is_at(self._due(port))

    def next(self, port: str) -> float | None:
        """The timestamp at which a port that is used now will be used next; None if not in this use."""
        time = self._due(port, 1) if port in self._every else self._target()
        return None if time >= self.end - self._slack(self.end) else self.stamp(time)

    def advance(self) -> None:
        """Has the model go on to the next time at which a port is used. Raises :class:`ModelError`."""
        for port in self._every:
            if self.is_due(port):
                self._used[port] += 1
        begin, target = self.now, self._target()
        whole = self._step is not None and self._steps and abs(target - begin - self._step) <= self._slack(target)
        if whole:
            self._model.call("update", lacking="write it, or say by --every (bmi_every) when ports are used")
        else:
            self._until(target)
        self.now = self._model.number("get_current_time")
        if not self.now > begin:
            what = "stood still at" if self.now == begin else "gone back from"
            raise ModelError(
                f"{self._model} has {what} time {begin:g} {self.unit}"
                f"{'' if self.now == begin else f' to {self.now:g}'} in {'update' if whole else 'update_until'}: the "
                "steps would never end"
            )
        if not whole and abs(self.now - target) > self._slack(target):
            raise self._refused(begin, target, f"it has gone to {self.now:g}")
        self._step = self._told_step(needed=self._steps)

    def _until(self, target: float) -> None:
        """Goes to a time by ``update_until``, or by whole steps if the model has only these."""
        try:
            self._model.call("update_until", target)
            return
        except NotImplementedError as missing:
            reached = self._model.number("get_current_time")
            if reached != self.now:
                raise self._model.wrong(
                    "update_until",
                    (target,),
                    f"has failed at {reached:g}, on the way from {self.now:g} {self.unit} ({missing}): what it has "
                    "printed may say why",
                ) from missing
            step = self._told_step(needed=False)
            count = round((target - self.now) / step) if step else 0
            if count < 1 or step is None or abs(self.now + count * step - target) > self._slack(target):
                raise self._refused(self.now, target, str(missing)) from missing
        for _ in range(count):
            self._model.call("update", lacking="write it, or update_until")

    def _refused(self, begin: float, target: float, why: str) -> ModelError:
        step = f", whose step is {self._step:g} {self.unit}," if self._step else ""
        return ModelError(
            f"{self._model}{step} does not go from {begin:g} to {target:g} {self.unit} ({why}): have --every "
            "(bmi_every) and --end (bmi_end) be whole steps of the model, or end there"
        )

    def _target(self) -> float:
        """The next time at which a port is used, or the end."""
        times = [self._due(port, self.is_due(port)) for port in self._every]
        if self._steps and self._step is not None:
            times.append(self.now + self._step)
            # The last step of a model may pass its end, unless the user has named the end.
            return min([*times, self.end]) if self._named_end else min(times)
        return min([*times, self.end])

    def _due(self, port: str, more: int = 0) -> float:
        return self._begin + (self._used[port] + more) * self._every[port]

    def _is_at(self, time: float) -> bool:
        return self.now >= time - self._slack(time)

    def _slack(self, time: float) -> float:
        """By how much the current time may miss a time that was meant."""
        return max(_PART * (self._step or 0.0), _ROUNDED * max(abs(self.now), abs(time)))

    def _told_step(self, needed: bool) -> float | None:
        if not needed:
            found = self._model.optional("get_time_step")
            return float(found) if isinstance(found, Real) and 0 < float(found) < math.inf else None
        step = self._model.number("get_time_step", lacking="write it, or say by --every when ports are used")
        if not step > 0:
            raise self._model.wrong("get_time_step", (), f"returned {step:g}, and not a step above 0")
        return step

    def _end(self, options: Options) -> float:
        self._named_end = options.end is not None
        if options.end is not None:
            return self.start + float(options.end / self._unit)
        end = self._model.number("get_end_time", lacking="write it, or name the end by --end (bmi_end)", infinite=True)
        # Models without an end tell the largest number.
        if not end < 1e300:
            raise ModelError(f"{self._model} has no end ({end:g}): name one by --end (bmi_end), such as --end '2 h'")
        if end < self.start:
            raise self._model.wrong("get_end_time", (), f"returned {end:g}, before the start at {self.start:g}")
        return end

    def _intervals(self, options: Options, ports: Sequence[str]) -> dict[str, float]:
        """How often ports are used, for those of which the user has said so."""
        unknown = [port for port in options.every if port and port not in ports]
        if unknown:
            raise ModelError(
                f"--every (bmi_every) names {unknown[0]}, which is no O_I or S port that is connected: there are "
                f"{', '.join(ports) or 'none'}"
            )
        every = {port: options.every.get(port, options.every.get("")) for port in ports}
        return {port: float(interval / self._unit) for port, interval in every.items() if interval is not None}


def _seconds_of_stamps(unit: str) -> Fraction:
    """The seconds of the unit of timestamps, which is one of titin's own: its year is not that of UDUNITS."""
    one = titin.convert(1.0, unit, "s")
    # Parts of a second are whole parts: 0.001 as a number of double precision is not a thousandth.
    return Fraction(one) if one >= 1 else 1 / Fraction(titin.convert(1.0, "s", unit))
