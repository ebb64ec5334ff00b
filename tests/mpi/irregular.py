"""Two programs that exchange fields with irregular parts: `irregular.py a|b [gap|overlap]`.

Every element is its own number plus the number of the step, and each rank checks its elements. Both sides send before
they receive.
"""

import os
import sys

import numpy as np
import titin

side, *wrong = sys.argv[1:]
comm = None
if "OMPI_COMM_WORLD_SIZE" in os.environ:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD

SHAPE = (14, 10)
NUMBERS = np.arange(np.prod(SHAPE)).reshape(SHAPE)

#: The kinds of parts of each field, of `a` and of `b`.
KINDS = [
    ("boxes", "boxes"),
    ("boxes", "indices"),
    ("indices", "boxes"),
    ("owner", "grid"),
    ("grid", "indices"),
    ("boxes", "grid"),
    ("owner", "owner"),
]

#: The order of the flat arrays with owners, and of the numbers of their elements.
ORDER = "F" if side == "a" else "C"


def mine(kind, rank, ranks, factor):
    """The part of a rank, and the numbers of its elements in the order of its flat array."""
    if kind == "grid":
        columns = np.array_split(np.arange(SHAPE[1]), ranks)[rank]
        return titin.Grid((1, ranks)), NUMBERS[:, columns]
    if kind == "boxes":
        rows = [row for row in range(SHAPE[0]) if row * factor % ranks == rank]
        if wrong == ["gap"] and side == "a":
            rows = [row for row in rows if row != 5]
        if wrong == ["overlap"] and side == "a":
            rows = sorted({*rows, 5})
        boxes = [((row, 0), (row + 1, SHAPE[1])) for row in rows]
        return titin.Boxes(boxes), NUMBERS[rows].reshape(-1)
    if kind == "indices":
        numbers = np.array([n for n in NUMBERS.ravel() if (n * factor + n // 7) % ranks == rank][::-1])
        return titin.Indices(numbers), numbers
    numbers = np.array([n for n in NUMBERS.ravel(ORDER) if (n // 3) % ranks == rank])
    return titin.Owner(lambda row, column: (row * SHAPE[1] + column) // 3 % ranks), numbers


def declare(instance, port, kind, factor):
    owned, numbers = mine(kind, instance.rank, instance.ranks, factor)
    order = ORDER if isinstance(owned, titin.Owner) else "C"
    field = instance.field(port, SHAPE, float, owned=owned, order=order)
    if numbers.ndim == 2:
        assert np.array_equal(NUMBERS[np.ix_(*field.owned)], numbers)
    elif kind != "boxes":
        for flat in ("extents", "owned"):
            try:
                getattr(field, flat)
            except titin.UsageError:
                continue
            raise AssertionError(f"flat arrays have {flat}")
    return field, numbers


count = len(KINDS)
there, back = ([f"{name}{number}" for number in range(count)] for name in ("there", "back"))
with titin.Instance(o_i=there if side == "a" else back, s=back if side == "a" else there, comm=comm) as instance:
    instance.reuse()
    out, into = [], []
    for number, (one, other) in enumerate(KINDS):
        kinds = (one, other) if side == "a" else (other, one)
        sends, receives = ("there", "back") if side == "a" else ("back", "there")
        out.append(declare(instance, f"{sends}{number}", kinds[0], 5))
        into.append(declare(instance, f"{receives}{number}", kinds[0], 3))
    for step in range(3):
        for field, numbers in out:
            field.send(np.ascontiguousarray(numbers, dtype=float) + 1000 * step, timestamp=float(step))
        for field, numbers in into:
            got = np.full(numbers.shape, -1.0)
            stamps = field.receive(got)
            assert stamps.timestamp == step
            assert np.array_equal(got, numbers + 1000.0 * step), (instance.rank, field, got, numbers)
