"""Models on several ranks: the communicator of a model, and which part of each grid a rank has.

The methods are those of CSDMS's draft of a parallel Basic Model Interface. ``docs/bmi.md`` says which are asked for.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import titin
from numpy.typing import NDArray
from titin.bmi.grids import Grid
from titin.bmi.model import Model, ModelError

#: The input variable by which models of NextGen get their communicator, as a handle of Fortran.
HANDLE = "bmi_mpi_comm_handle"


class Ranks:
    """The ranks of an instance: a communicator of mpi4py, or none for a program that is one process."""

    def __init__(self, comm: Any = None) -> None:
        self.comm = comm
        self.rank: int = comm.Get_rank() if comm is not None else 0
        self.count: int = comm.Get_size() if comm is not None else 1

    @classmethod
    def of_world(cls) -> Ranks:
        """All ranks that the launcher of an MPI has started. Raises :class:`ModelError` without mpi4py."""
        try:
            from mpi4py import MPI
        except (ImportError, RuntimeError) as error:
            raise ModelError(
                f"a model on several ranks needs mpi4py, for the MPI that starts it ({error}): pip install mpi4py in "
                "the environment of the program"
            ) from None
        return cls(MPI.COMM_WORLD)

    def initialize(self, model: Model, path: str) -> None:
        """Gives the model its communicator, and has it initialize itself. Returns when all ranks have done so."""
        if self.comm is not None and model.has("initialize_mpi"):
            model.call("initialize_mpi", path, self.comm.py2f())
        else:
            self._give_communicator(model)
            model.call("initialize", path, lacking="write it")
        if self.comm is not None:
            # The next use writes the configuration anew: no rank may be about to read that of this use.
            self.comm.Barrier()

    def _give_communicator(self, model: Model) -> None:
        """Gives the model its communicator, by the first way that the model has.

        A model that is one process gets that of this process alone, if there is an mpi4py to make it.
        """
        for method in ("parallel_initialize", "set_communicator"):
            if model.has(method):
                comm = self.comm or _alone()
                if comm is not None:
                    model.call(method, comm)
                return
        if self.comm is None:
            return
        try:
            inputs = model.names("get_input_var_names")
        except Exception:
            # Before it is initialized a model need not know its variables.
            inputs = ()
        if HANDLE in inputs:
            model.set(HANDLE, np.array([self.comm.py2f()], np.int32))

    def gathered(self, value: Any) -> list[Any]:
        """The values of all ranks, on all ranks."""
        return [value] if self.comm is None else list(self.comm.allgather(value))

    def gathered_by_first(self, value: Any) -> list[Any] | None:
        """The values of all ranks on rank 0; None on the others."""
        found: list[Any] | None = [value] if self.comm is None else self.comm.gather(value)
        return found


def _alone() -> Any:
    """The communicator of this process; None without mpi4py."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return None
    return MPI.COMM_SELF


@dataclass(frozen=True)
class Part:
    """What a rank has of the nodes, edges or faces of a grid. Elements are numbered from 0, in C order."""

    whole: tuple[int, ...]
    """The shape of the arrays of all ranks together."""
    shape: tuple[int, ...]
    """The shape of the array of this rank."""
    start: tuple[int, ...] | None
    """Where the box of this rank begins in the whole; None if the rank has no box."""
    numbers: NDArray[np.int64]
    """The numbers in the whole of the elements of this rank, ghosts included."""
    own: NDArray[np.bool_] | None
    """Which of the elements are this rank's own; the others are ghosts. None if all are."""

    def owned(self, sends: bool) -> titin.Boxes | titin.Indices:
        """The part as a field has it: the rank sends what is its own, and receives its ghosts too."""
        if sends and self.own is not None:
            return titin.Indices(self.numbers[self.own])
        if self.start is None:
            return titin.Indices(self.numbers)
        return titin.Boxes([(self.start, tuple(a + n for a, n in zip(self.start, self.shape)))])

    def sent(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values that are this rank's own, as a field sends them."""
        return values if self.own is None else values.reshape(-1)[self.own]


class Parts:
    """The parts that a rank has of the grids of a model."""

    def __init__(self, model: Model, ranks: Ranks, blocks: bool) -> None:
        self._model = model
        self._ranks = ranks
        self._blocks = blocks
        self._known: dict[tuple[int, str, int], Part | None] = {}

    def of(self, name: str, grid: Grid, count: int, location: str) -> Part | None:
        """The part of this rank, whose array of a variable has so many elements; None for a single number.

        All ranks make this call together. Raises :class:`ModelError` for a model that does not tell its part.
        """
        if self._ranks.count == 1 or grid.kind == "scalar" or (grid.rank == 0 and count == 1):
            return None
        key = (grid.number, location, count)
        if key not in self._known:
            self._known[key] = self._told(name, grid, count, location)
        return self._known[key]

    def _told(self, name: str, grid: Grid, count: int, location: str) -> Part:
        what = location if location in ("edge", "face") else "node"
        owners = grid.filled(f"get_grid_{what}_partition", count, np.int32)
        own = None if owners is None or (owners == self._ranks.rank).all() else owners == self._ranks.rank
        if grid.shape is not None and what == "node":
            start, stop = np.zeros(grid.rank, np.int32), np.zeros(grid.rank, np.int32)
            with suppress(NotImplementedError):
                self._model.call("get_grid_partition_range", grid.number, start, stop)
                return self._box(grid, count, start, stop, own)
        numbers = grid.filled(f"get_grid_global_{what}_nr", count, np.int32)
        if numbers is not None:
            return self._numbered(grid, f"get_grid_global_{what}_nr", numbers.astype(np.int64), own, what)
        if self._blocks:
            return self._stacked(grid, name, count, location, own)
        raise ModelError(
            f"{self._model} runs on {self._ranks.count} ranks, and does not tell which part of {name} (grid "
            f"{grid.number}) a rank has: write get_grid_partition_range or get_grid_global_{what}_nr, or, if the parts "
            "follow each other along the first dimension in the order of the ranks, say --blocks (bmi_blocks: true)"
        )

    def _box(
        self, grid: Grid, count: int, start: NDArray[Any], stop: NDArray[Any], own: NDArray[np.bool_] | None
    ) -> Part:
        whole = grid.shape
        assert whole is not None
        begin, end = tuple(map(int, start)), tuple(map(int, stop))
        shape = tuple(b - a for a, b in zip(begin, end))
        if any(a < 0 or b < a or b > n for a, b, n in zip(begin, end, whole)):
            raise self._model.wrong(
                "get_grid_partition_range",
                (grid.number,),
                f"returned {list(begin)} to {list(end)} on rank {self._ranks.rank}, and get_grid_shape {list(whole)}: "
                "the shape is that of the whole grid, indices count from 0, and the end is the first index behind",
            )
        if math.prod(shape) != count:
            raise self._model.wrong(
                "get_grid_partition_range",
                (grid.number,),
                f"returned {list(begin)} to {list(end)} on rank {self._ranks.rank}, {math.prod(shape)} nodes, and "
                f"get_var_nbytes tells {count}: the end is the first index behind",
            )
        axes = np.ix_(*(np.arange(a, b) for a, b in zip(begin, end)))
        numbers = np.ravel_multi_index(axes, whole).reshape(-1) if count else np.zeros(0, np.int64)
        return Part(whole, shape, begin, numbers.astype(np.int64), own)

    def _numbered(
        self, grid: Grid, method: str, numbers: NDArray[np.int64], own: NDArray[np.bool_] | None, what: str
    ) -> Part:
        low, high = int(numbers.min(initial=0)), int(numbers.max(initial=-1))
        told = self._ranks.gathered((low, high))
        highest = max(high for _, high in told)
        for rank, (low, _) in enumerate(told):
            if low < 0:
                raise self._model.wrong(method, (grid.number,), f"returned {low} on rank {rank}: numbers count from 0")
        whole = grid.shape if grid.shape is not None and what == "node" else (highest + 1,)
        if highest >= math.prod(whole):
            raise self._model.wrong(
                method, (grid.number,), f"returned {highest}, and get_grid_shape {list(whole)}: numbers count from 0"
            )
        return Part(whole, (len(numbers),), None, numbers, own)

    def _stacked(self, grid: Grid, name: str, count: int, location: str, own: NDArray[np.bool_] | None) -> Part:
        shape, _ = grid.layout(name, count, location)
        shapes = self._ranks.gathered(shape)
        for rank, other in enumerate(shapes):
            if other[1:] != shapes[0][1:]:
                raise ModelError(
                    f"the arrays of {name} have the shape {shapes[0]} on rank 0, and {other} on rank {rank}: blocks "
                    "along the first dimension (--blocks, bmi_blocks) differ in the first extent only"
                )
        before = sum(other[0] for other in shapes[: self._ranks.rank])
        whole = (sum(other[0] for other in shapes), *shape[1:])
        first = before * math.prod(shape[1:])
        return Part(whole, shape, (before, *(0,) * (len(shape) - 1)), np.arange(first, first + count), own)
