"""Questions to the profile of a run, ``performance.sqlite``; those of MUSCLE3's runs have the same tables."""

from __future__ import annotations

import sqlite3
import threading
import warnings
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_EDGES = {"start": "start_time", "stop": "stop_time"}


class ProfileDatabase:
    """A profile, to be used in a ``with`` block. Each thread that asks has a connection of its own."""

    def __init__(self, db_file: str | Path) -> None:
        self._file = Path(db_file)
        self._connections = threading.local()

    def close(self) -> None:
        """Closes the connection of this thread."""
        connection = getattr(self._connections, "open", None)
        if connection is not None:
            connection.close()
            del self._connections.open

    def instance_stats(self) -> tuple[list[str], list[float], list[float], list[float]]:
        """Names of instances, and for each the seconds in which it computed, sent and received, and waited to receive.

        An instance that never connected is left out, and warned of.
        """
        names = [row[0] for row in self._rows("SELECT name FROM instances")]
        begin = self._times("SELECT instance, stop_time FROM all_events WHERE type = 'CONNECT'")
        end = self._ends(names)
        for name in names:
            if name not in begin:
                warnings.warn(f"{name} has never joined the run, and is left out", stacklevel=2)
        busy = self._sums("SEND", "RECEIVE")
        waited = self._sums("RECEIVE_WAIT")
        known = [name for name in names if name in begin and name in end]
        waits = [waited.get(name, 0) * 1e-9 for name in known]
        communicates = [(busy.get(name, 0) - waited.get(name, 0)) * 1e-9 for name in known]
        runs = [
            (end[name] - begin[name]) * 1e-9 - communicated - wait
            for name, communicated, wait in zip(known, communicates, waits, strict=True)
        ]
        return known, runs, communicates, waits

    def resource_stats(self) -> dict[str, dict[str, float]]:
        """For each core, as ``node:core``, the instances on it, and the seconds in which each did not wait."""
        names, runs, communicates, _ = self.instance_stats()
        active = {name: run + sent for name, run, sent in zip(names, runs, communicates, strict=True)}
        cores: dict[str, dict[str, float]] = {}
        for name, node, core in self._rows(
            "SELECT i.name, a.node, a.core FROM instances AS i JOIN assigned_cores AS a ON i.oid = a.instance_oid"
        ):
            if name in active:
                cores.setdefault(f"{node}:{core}", {})[name] = active[name]
        return cores

    def time_taken(
        self,
        *,
        etype: str,
        instance: str | None = None,
        port: str | None = None,
        slot: int | None = None,
        time: str | None = "start",
        etype2: str | None = None,
        port2: str | None = None,
        slot2: int | None = None,
        time2: str | None = "stop",
        aggregate: str = "mean",
    ) -> float:
        """Nanoseconds from one edge of an event to another, of the same event or of two kinds of events.

        The events are those of type ``etype`` of this instance (all of them by default), port and slot; ``time`` is
        ``"start"`` or ``"stop"``. The later edge is that of ``etype2``, ``port2`` and ``slot2``, by default the same,
        at ``time2``. ``aggregate``: ``"mean"`` or ``"sum"``. Raises RuntimeError if there are not as many events of
        either kind, or none for the mean, and ValueError for another word.
        """
        for name, value in (("time", time), ("time2", time2)):
            if value is not None and value not in _EDGES:
                raise ValueError(f'Invalid {name} value, please specify either "start" or "stop"; found {value!r}')
        if aggregate not in ("mean", "sum"):
            raise ValueError(f'Unknown aggregate {aggregate}, please specify either "mean" or "sum"')
        first = self._edges(etype, time or "start", instance, port, slot)
        last = self._edges(
            etype2 or etype,
            time2 or "stop",
            instance,
            port if port2 is None else port2,
            slot if slot2 is None else slot2,
        )
        if len(first) != len(last):
            raise RuntimeError(f"The number of start and stop events is not the same: {len(first)} != {len(last)}")
        if not first and aggregate == "mean":
            raise RuntimeError("No matching events were found")
        # Sums of times since 1970 in nanoseconds need more than 64 bits, which Python's numbers have.
        taken = sum(last) - sum(first)
        return taken / len(first) if aggregate == "mean" else float(taken)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, raised: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _ends(self, names: list[str]) -> dict[str, int]:
        """When each instance ended its last use, in nanoseconds: it began to wait for another use, or to leave."""
        ends = self._times("SELECT instance, start_time FROM all_events WHERE type = 'DISCONNECT_WAIT'")
        ends |= self._times("SELECT instance, start_time FROM all_events WHERE type = 'SHUTDOWN_WAIT'")
        last = self._times("SELECT instance, MAX(stop_time) FROM all_events GROUP BY instance")
        for name in names:
            if name not in ends:
                warnings.warn(f"{name} did not leave the run by itself; its times may be incomplete", stacklevel=3)
                if name in last:
                    ends[name] = last[name]
        return ends

    def _edges(self, etype: str, time: str, instance: str | None, port: str | None, slot: int | None) -> list[int]:
        query, values = f"SELECT {_EDGES[time]} FROM all_events WHERE type = ?", [etype]
        for column, comparison, value in (("instance", "LIKE", instance), ("port", "=", port), ("slot", "=", slot)):
            if value is not None:
                query += f" AND {column} {comparison} ?"
                values.append(value)  # type: ignore[arg-type]
        return [row[0] for row in self._rows(query, *values)]

    def _sums(self, *types: str) -> dict[str, int]:
        marks = ", ".join("?" * len(types))
        query = (
            f"SELECT instance, SUM(stop_time - start_time) FROM all_events WHERE type IN ({marks}) GROUP BY instance"
        )
        return dict(self._rows(query, *types))

    def _times(self, query: str) -> dict[str, int]:
        return dict(self._rows(query))

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        if not hasattr(self._connections, "open"):
            if not self._file.exists():
                raise FileNotFoundError(f"there is no profile at {self._file}")
            self._connections.open = sqlite3.connect(self._file)
        connection: sqlite3.Connection = self._connections.open
        return connection.execute(query, values).fetchall()
