"""Fields for both ends of a conduit, and the values that a receiver has to get: computed by NumPy, index by index."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import titin

DTYPES = ["f8", "f4", "i4", "i2", "u1", "c16", "u8"]


@dataclass
class End:
    """The declaration of one instance, with as many ranks as the instance has."""

    shape: tuple[int, ...]
    processes: tuple[int, ...]
    #: "even", "block", ("cyclic", b) or bounds, for each dimension.
    spread: list[Any]
    ranks: str = "C"
    order: str = "C"
    halo: tuple[tuple[int, int], ...] = ()
    #: Lower and upper bounds.
    region: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    #: Whether the program's arrays are views with steps.
    strided: bool = False
    dtypes: list[str] = field(default_factory=lambda: ["f8"])

    def declare(self, instance: titin.Instance, port: str) -> titin.Field:
        declared = instance.field(
            port,
            shape=self.shape,
            dtype=self.dtypes if len(self.dtypes) > 1 else self.dtypes[0],
            owned=titin.Grid(self.processes, self.spread, self.ranks),
            halo=self.halo or 0,
            region=self.region,
            order=self.order,
        )
        assert declared.extents == self.memory(instance.rank, "u1")[0].shape
        for told, known in zip(declared.owned, self.owned(instance.rank), strict=True):
            assert np.array_equal(told, known), (self, instance.rank, told, known)
        return declared

    def owned(self, rank: int) -> list[np.ndarray]:
        """The indices that a rank owns along each dimension, in their order."""
        if rank >= np.prod(self.processes):
            return [np.arange(0) for _ in self.shape]
        place = np.unravel_index(rank, self.processes, order=self.ranks)
        return [
            self._along(np.arange(extent), count, spread)[int(at)]
            for extent, count, spread, at in zip(self.shape, self.processes, self.spread, place, strict=True)
        ]

    @staticmethod
    def _along(all_of_it: np.ndarray, count: int, spread: Any) -> list[np.ndarray]:
        if spread == "even":
            return np.array_split(all_of_it, count)
        if spread == "block":
            block = -(-len(all_of_it) // count)
            return [all_of_it[process * block : (process + 1) * block] for process in range(count)]
        if spread[0] == "cyclic":
            return [all_of_it[all_of_it // spread[1] % count == process] for process in range(count)]
        return [all_of_it[low:high] for low, high in pairwise(spread)]

    def memory(self, rank: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
        """The array of a rank with its halo, and the view of the part that the rank owns. All elements have a mark."""
        halo = self.halo or ((0, 0),) * len(self.shape)
        extents = [len(owned) + below + above for owned, (below, above) in zip(self.owned(rank), halo, strict=True)]
        if self.strided:
            whole = np.full([2 * extent + 1 for extent in extents], 99, dtype, self.order)
            local = whole[tuple(slice(2 * extent - 1, None, -2) if extent else slice(0) for extent in extents[:1])]
            local = local[(slice(None), *(slice(1, None, 2) for _ in extents[1:]))]
        else:
            local = np.full(extents, 99, dtype, self.order)
        assert local.shape == tuple(extents)
        inside = tuple(slice(below, extent - above) for extent, (below, above) in zip(extents, halo, strict=True))
        return local, local[inside]

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = self.region or ((0,) * len(self.shape), self.shape)
        return np.array(lower), np.array(upper)


def values(indices: list[np.ndarray], shape: tuple[int, ...], step: int, number: int) -> np.ndarray:
    """The elements of the sender's whole array at these indices: all different, as far as small types go."""
    total = np.zeros([len(each) for each in indices], np.int64)
    for each, extent in zip(np.ix_(*indices), shape, strict=True):
        total = total * extent + each
    return (total * 7 + step * 31 + number * 13) % 97


def fill(end: End, rank: int, step: int) -> list[np.ndarray]:
    """The arrays that a rank sends."""
    arrays = []
    for number, dtype in enumerate(end.dtypes):
        local, inside = end.memory(rank, dtype)
        inside[...] = values(end.owned(rank), end.shape, step, number)
        arrays.append(local)
    return arrays


def expected(sender: End, receiver: End, rank: int, step: int) -> list[np.ndarray]:
    """The arrays of a rank after it has received. Elements outside the region, and the halo, keep the mark."""
    (first, _), (lower, upper) = sender.bounds(), receiver.bounds()
    arrays = []
    for number, dtype in enumerate(receiver.dtypes):
        local, inside = receiver.memory(rank, dtype)
        owned = receiver.owned(rank)
        chosen = [(each >= low) & (each < high) for each, low, high in zip(owned, lower, upper, strict=True)]
        there = [each[taken] - low + begin for each, taken, low, begin in zip(owned, chosen, lower, first, strict=True)]
        inside[np.ix_(*chosen)] = values(there, sender.shape, step, number)
        arrays.append(local)
    return arrays


def rows(ranks: int, shape: tuple[int, ...], **more: Any) -> End:
    """An end whose first dimension is spread over all ranks."""
    return End(shape, (ranks, *[1] * (len(shape) - 1)), ["even"] * len(shape), **more)


def columns(ranks: int, shape: tuple[int, ...], **more: Any) -> End:
    """An end whose last dimension is spread over all ranks."""
    return End(shape, (*[1] * (len(shape) - 1), ranks), ["even"] * len(shape), **more)


def pairs(senders: int, receivers: int) -> list[tuple[End, End, End]]:
    """Sender, receiver, and a serial receiver of the same array, for `senders` and `receivers` ranks at the ends."""
    known: list[tuple[End, End]] = []

    def add(sender: End, receiver: End) -> None:
        known.append((sender, receiver))

    add(rows(senders, (12, 10)), rows(receivers, (12, 10)))
    add(rows(senders, (12, 10)), columns(receivers, (12, 10)))
    add(rows(senders, (9, 7), order="F"), columns(receivers, (9, 7)))
    add(columns(senders, (9, 7)), columns(receivers, (9, 7), order="F"))
    halo = ((1, 2), (0, 1))
    add(rows(senders, (8, 6), halo=halo), rows(receivers, (8, 6), halo=((2, 0), (1, 1)), order="F"))
    add(rows(senders, (8, 6), region=((1, 2), (6, 5))), columns(receivers, (9, 9), region=((4, 0), (9, 3))))
    add(rows(senders, (8, 6), strided=True), columns(receivers, (8, 6), strided=True))
    add(columns(senders, (8, 6), strided=True, halo=halo), rows(receivers, (8, 6), strided=True, halo=((1, 1), (1, 1))))
    many = ["f8", "i4", "u1", "c16", "f4"]
    add(rows(senders, (6, 11), dtypes=many), columns(receivers, (6, 11), dtypes=many, order="F"))
    # More ranks than rows, and ranks beyond the grid.
    add(rows(senders, (1, 9)), columns(receivers, (1, 9)))
    add(End((2, 2), (1, 1), ["even"] * 2), columns(receivers, (2, 2)))
    add(rows(senders, (3,)), rows(receivers, (3,), strided=True))
    add(End((7,), (senders,), ["block"]), End((7,), (receivers,), [[0] * receivers + [7]]))
    # A single element, a large array that does not fit into one loan, seven dimensions.
    add(rows(senders, (1,)), columns(receivers, (1,)))
    add(rows(senders, (700, 900)), columns(receivers, (700, 900)))
    add(rows(senders, (4, 1, 2, 3, 1, 2, 2)), columns(receivers, (4, 1, 2, 3, 1, 2, 2), order="F"))
    chance = random.Random(senders * 100 + receivers)
    for dims in (1, 2, 3, 4) * 3:
        add(*chosen(chance, senders, receivers, dims))
    return [(sender, receiver, part(chance, sender)) for sender, receiver in known]


def chosen(chance: random.Random, senders: int, receivers: int, dims: int) -> tuple[End, End]:
    """Two random ends that fit each other."""
    extents = [chance.randint(1, 9) for _ in range(dims)]
    dtypes = [chance.choice(DTYPES) for _ in range(chance.randint(1, 3))]
    both = []
    for ranks in (senders, receivers):
        lower = [chance.randint(0, 4) for _ in extents]
        shape = tuple(low + extent + chance.randint(0, 4) for low, extent in zip(lower, extents, strict=True))
        upper = tuple(low + extent for low, extent in zip(lower, extents, strict=True))
        processes = [1] * dims
        for dim in chance.sample(range(dims), dims):
            most = ranks // int(np.prod(processes))
            processes[dim] = chance.randint(1, most)
        spread: list[Any] = []
        for extent, count in zip(shape, processes, strict=True):
            cuts = sorted(chance.randint(0, extent) for _ in range(count - 1))
            ways = ["even", "block", ("cyclic", chance.randint(1, 3)), ("cyclic", 1), [0, *cuts, extent]]
            spread.append(chance.choice(ways))
        halo = tuple((chance.randint(0, 2), chance.randint(0, 2)) for _ in extents)
        region = (tuple(lower), upper)
        order = [chance.choice("CF") for _ in range(2)]
        both.append(End(shape, tuple(processes), spread, *order, halo, region, chance.random() < 0.3, dtypes))
    return both[0], both[1]


def part(chance: random.Random, sender: End) -> End:
    """The serial end: its array is the coupled region, or a larger array with the region inside."""
    lower, upper = sender.bounds()
    extents = tuple(int(extent) for extent in upper - lower)
    dims = len(extents)
    if chance.random() < 0.5:
        return End(extents, (1,) * dims, ["even"] * dims, dtypes=sender.dtypes)
    at = tuple(chance.randint(0, 3) for _ in extents)
    shape = tuple(begin + extent + 1 for begin, extent in zip(at, extents, strict=True))
    end = tuple(begin + extent for begin, extent in zip(at, extents, strict=True))
    return End(shape, (1,) * dims, ["even"] * dims, region=(at, end), dtypes=sender.dtypes, order=chance.choice("CF"))
