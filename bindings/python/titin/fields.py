"""Parallel programs: how the array of a field is spread over the ranks of an instance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from titin.errors import TypeMismatch, UsageError

Spread = Literal["even", "block"] | tuple[Literal["cyclic"], int] | Sequence[int]
"""How one dimension is spread over its processes; see :class:`Grid`."""

# As in titin.h.
_KINDS = {"even": 1, "block": 2}
_CYCLIC = 3


@dataclass(frozen=True)
class Grid:
    """A grid of processes: ``Grid((4, 1))`` has four along the first dimension and one along the second.

    ``spread`` says how each dimension is spread over its processes, one word for all dimensions or one for each.
    ``"even"``: blocks whose sizes differ by one at most, as :func:`numpy.array_split`. ``"block"``: blocks of
    ceil(n/p), as BLOCK of HPF. ``("cyclic", b)``: blocks of b dealt out in turn, as ScaLAPACK. Or the bounds of the
    blocks: p + 1 numbers from 0 to n. Ranks count through the grid with the last dimension fastest, as
    ``MPI_Cart_create`` does, or with ``ranks="F"`` with the first dimension fastest.
    """

    processes: Sequence[int]
    spread: Spread | Sequence[Spread] = "even"
    ranks: Literal["C", "F"] = "C"


@dataclass(frozen=True)
class Boxes:
    """Boxes of this rank: pairs of lower and upper indices, or tuples of slices. Upper indices are exclusive.

    With one box the local array has the shape of the box. With several boxes the local array is flat, one box after the
    other.
    """

    boxes: Iterable[Any]


@dataclass(frozen=True)
class Indices:
    """The numbers of this rank's elements, in the order of the rank's flat local array.

    Numbers count through the whole array in the order of its memory: the last dimension fastest, or with ``order="F"``
    the first.
    """

    numbers: ArrayLike


@dataclass(frozen=True)
class Owner:
    """A function that gives the owner of an element. Every rank calls the function with the indices of each element.

    The local array is flat, with the elements of this rank in the order of memory: the last dimension fastest, or the
    first with ``order="F"``.
    """

    owner: Callable[..., int]


class Communicator(Protocol):
    """The ranks of a parallel program, with the methods of mpi4py's communicators: the ``comm`` of
    :class:`titin.Instance`."""

    def Get_rank(self) -> int: ...
    def Get_size(self) -> int: ...
    def bcast(self, obj: Any, root: int = 0, /) -> Any: ...
    def gather(self, sendobj: Any, root: int = 0, /) -> list[Any] | None: ...


class Stamps(NamedTuple):
    """The simulated time of a field, and of the next field."""

    timestamp: float
    next_timestamp: float | None


Owned = Grid | Boxes | Indices | Owner
Parts = tuple[str, Any, Any, Any]


def describe(owned: Owned | None, shape: Sequence[int], order: str, rank: int, ranks: int) -> Parts:
    """A decomposition as the extension takes it: a kind, and three values that depend on the kind."""
    dims = len(shape)
    if owned is None:
        owned = Grid([1] * dims)
    if isinstance(owned, Grid):
        processes = [int(count) for count in owned.processes]
        if len(processes) != dims:
            raise UsageError(f"a grid of {len(processes)} dimensions for an array of {dims}: give a count for each")
        if owned.ranks not in ("C", "F"):
            raise UsageError(f'ranks={owned.ranks!r}: ranks count through the grid as "C" or as "F"')
        return "grid", processes, _spreads(owned.spread, dims), owned.ranks
    if isinstance(owned, Boxes):
        # A rank without boxes gives an empty box.
        boxes = [_bounds(box, shape) for box in owned.boxes] or [([0] * dims, [0] * dims)]
        return "boxes", boxes, None, None
    if isinstance(owned, Indices):
        numbers = np.asarray(owned.numbers)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise TypeMismatch(
                f"Indices takes a flat array of whole numbers, not {numbers.dtype} of rank {numbers.ndim}"
            )
        return "indices", np.ascontiguousarray(numbers, dtype=np.int64), None, None
    if isinstance(owned, Owner):
        return "indices", _owned(owned.owner, shape, order, rank, ranks), None, None
    raise TypeMismatch(f"owned takes a titin.Grid, Boxes, Indices or Owner, not {type(owned).__name__}")


def _spreads(spread: Any, dims: int) -> list[Any]:
    one_for_all = isinstance(spread, str) or _is_cyclic(spread)
    each = [spread] * dims if one_for_all else list(spread)
    if len(each) != dims:
        raise UsageError(f"{len(each)} ways to spread an array of {dims} dimensions: give one for all, or one for each")
    return [_spread(one) for one in each]


def _spread(one: Any) -> Any:
    """The spread of one dimension: number of the kind and block size, or bounds."""
    if isinstance(one, str):
        if one not in _KINDS:
            raise UsageError(f'{one!r} is no way to spread a dimension: "even", "block", ("cyclic", b), or bounds')
        return _KINDS[one], 0
    if _is_cyclic(one):
        return _CYCLIC, int(one[1])
    return [int(bound) for bound in one]


def _is_cyclic(spread: Any) -> bool:
    """Whether a spread is ("cyclic", b). Bounds may be an array, whose ``==`` compares element by element."""
    return len(spread) == 2 and isinstance(spread[0], str) and spread[0] == "cyclic"


def _bounds(box: Any, shape: Sequence[int]) -> tuple[list[int], list[int]]:
    box = (box,) if isinstance(box, slice) else tuple(box)
    if box and all(isinstance(part, slice) for part in box):
        if len(box) != len(shape):
            raise UsageError(f"a box of {len(box)} slices in an array of {len(shape)} dimensions: give one for each")
        steps = [part.indices(extent) for part, extent in zip(box, shape)]
        if any(step != 1 for _, _, step in steps):
            raise UsageError(f"a box of slices has no steps: {box}")
        if any((part.stop or 0) > extent for part, extent in zip(box, shape)):
            raise UsageError(f"the slices {box} end outside the array of {' × '.join(map(str, shape))}")
        return [start for start, _, _ in steps], [max(start, stop) for start, stop, _ in steps]
    if len(box) != 2:
        raise UsageError(f"a box is a pair of lower and upper indices, or a slice for each dimension, not {box}")
    lower, upper = box
    return [int(bound) for bound in lower], [int(bound) for bound in upper]


def region(given: Any, shape: Sequence[int]) -> tuple[list[int], list[int]] | None:
    """The bounds of a region."""
    return None if given is None else _bounds(given, shape)


def halo(given: Any, dims: int) -> tuple[list[int], list[int]]:
    """The widths of a halo: a number for all sides, one for each dimension, or a pair for each dimension."""
    whole = int, np.integer
    each = [given] * dims if isinstance(given, whole) else list(given)
    if len(each) != dims:
        raise UsageError(f"{len(each)} halo widths for an array of {dims} dimensions: give one, or one for each")
    pairs = [(width, width) if isinstance(width, whole) else tuple(width) for width in each]
    if any(len(pair) != 2 for pair in pairs):
        raise UsageError(f"halo={given!r}: a width is a number, or one for each side")
    return [int(below) for below, _ in pairs], [int(above) for _, above in pairs]


def _owned(owner: Callable[..., int], shape: Sequence[int], order: str, rank: int, ranks: int) -> NDArray[np.int64]:
    places = np.unravel_index(np.arange(prod(shape)), tuple(shape), order="F" if order == "F" else "C")
    mine = []
    for number, place in enumerate(zip(*places)):
        indices = tuple(map(int, place))
        found = owner(*indices)
        if not isinstance(found, int | np.integer) or not 0 <= found < ranks:
            raise UsageError(f"the owner function gave {found!r} for {indices}: there are ranks 0 to {ranks - 1}")
        if found == rank:
            mine.append(number)
    return np.array(mine, dtype=np.int64)
