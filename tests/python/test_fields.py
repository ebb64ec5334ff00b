"""The meaning of a field's arguments: titin.fields beside the numbers of titin.h and NumPy's own answers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import titin
from titin.data import Scale, scale
from titin.fields import Boxes, Grid, Indices, Owner, describe, halo, region

HEADER = (Path(titin.__file__).parent / "include" / "titin.h").read_text()
EVEN, BLOCK, CYCLIC = (int(re.search(rf"TITIN_{name} = (\d)", HEADER)[1]) for name in ("EVEN", "BLOCK", "CYCLIC"))


def refused(owned, shape, text, kind=titin.UsageError):
    with pytest.raises(kind, match=re.escape(text)):
        describe(owned, shape, "C", 0, 2)


@pytest.mark.parametrize(
    ("spread", "expected"),
    [
        ("even", [(EVEN, 0)] * 2),
        ("block", [(BLOCK, 0)] * 2),
        (("cyclic", 3), [(CYCLIC, 3)] * 2),
        (["block", "even"], [(BLOCK, 0), (EVEN, 0)]),
        (["even", ("cyclic", 2)], [(EVEN, 0), (CYCLIC, 2)]),
        ([[0, 4, 9], "block"], [[0, 4, 9], (BLOCK, 0)]),
        # Two bounds are the bounds of one block.
        ([[0, 9], np.array([0, 2, 5])], [[0, 9], [0, 2, 5]]),
        ([np.array([0, 9]), np.array([0, 5])], [[0, 9], [0, 5]]),
        (np.array([[0, 4, 9], [0, 2, 5]]), [[0, 4, 9], [0, 2, 5]]),
    ],
)
@pytest.mark.parametrize("ranks", ["C", "F"])
def test_a_grid_says_how_each_dimension_is_spread(spread, expected, ranks):
    grid = Grid(np.array([3, 2]), spread, ranks)
    assert describe(grid, (9, 5), "C", 0, 6) == ("grid", [3, 2], expected, ranks)


def test_a_grid_of_one_dimension_may_give_its_spread_in_a_list():
    assert describe(Grid([3], [("cyclic", 2)]), (9,), "C", 0, 3) == ("grid", [3], [(CYCLIC, 2)], "C")


def test_without_a_decomposition_all_is_on_one_rank():
    assert describe(None, (9, 5, 2), "C", 0, 1) == ("grid", [1, 1, 1], [(EVEN, 0)] * 3, "C")


def test_grids_that_do_not_fit_are_refused():
    refused(Grid([2]), (9, 5), "a grid of 1 dimensions for an array of 2")
    refused(Grid([2, 1], ranks="K"), (9, 5), "ranks='K': ranks count")
    refused(Grid([2, 1], ["even"]), (9, 5), "1 ways to spread an array of 2 dimensions")
    refused(Grid([2, 1], "odd"), (9, 5), "'odd' is no way to spread a dimension")
    refused("even", (9, 5), "owned takes a titin.Grid, Boxes, Indices or Owner, not str", titin.TypeMismatch)


SLICES = [
    (slice(None), slice(None)),
    (slice(2, 5), slice(None, 3)),
    (slice(4, None), slice(1, 1)),
    (slice(-3, None), slice(None, -2)),
    (slice(0, 9), slice(0, 6)),
    (slice(5, 2), slice(0, 1)),
    (slice(0, 5, 1), slice(0, 5, None)),
]


@pytest.mark.parametrize("box", SLICES)
def test_a_box_of_slices_is_what_they_choose_of_an_array(box):
    whole = np.arange(54).reshape(9, 6)
    kind, [(lower, upper)], *rest = describe(Boxes([box]), whole.shape, "C", 0, 1)
    assert (kind, rest) == ("boxes", [None, None])
    assert all(low <= high for low, high in zip(lower, upper))
    got = whole[lower[0] : upper[0], lower[1] : upper[1]]
    assert got.shape == whole[box].shape
    assert (got == whole[box]).all()
    assert region(box, whole.shape) == (lower, upper)


def test_a_box_is_a_slice_where_there_is_one_dimension():
    assert describe(Boxes([slice(2, 4), slice(7, None)]), (9,), "C", 0, 1)[1] == [([2], [4]), ([7], [9])]
    assert region(slice(2, 4), (9,)) == ([2], [4])
    assert region(slice(None), (0,)) == ([0], [0])
    assert region(None, (9,)) is None


def test_a_box_is_a_pair_of_indices():
    boxes = Boxes([((1, 2), (3, 4)), [np.array([0, 0]), np.array([9, 5])]])
    assert describe(boxes, (9, 5), "C", 0, 1)[1] == [([1, 2], [3, 4]), ([0, 0], [9, 5])]
    # Only the library knows whether these are within the array.
    assert region(((0, 0), (90, 5)), (9, 5)) == ([0, 0], [90, 5])


def test_a_rank_without_boxes_has_an_empty_one():
    assert describe(Boxes([]), (9, 5), "C", 0, 1)[1] == [([0, 0], [0, 0])]


def test_boxes_that_cannot_be_are_refused():
    refused(Boxes([(slice(0, 2),)]), (9, 5), "a box of 1 slices in an array of 2 dimensions")
    refused(Boxes([slice(0, 2)]), (9, 5), "a box of 1 slices in an array of 2 dimensions")
    refused(Boxes([(slice(0, 4, 2), slice(None))]), (9, 5), "a box of slices has no steps")
    refused(Boxes([(slice(4, 0, -1), slice(None))]), (9, 5), "a box of slices has no steps")
    refused(Boxes([(slice(0, 10), slice(None))]), (9, 5), "end outside the array of 9 × 5")
    refused(Boxes([(slice(None), slice(0, 6))]), (9, 5), "end outside the array of 9 × 5")
    refused(Boxes([((0, 0), (1, 1), (2, 2))]), (9, 5), "a box is a pair of lower and upper indices")
    refused(Boxes([()]), (9, 5), "a box is a pair of lower and upper indices")


@pytest.mark.parametrize("numbers", [[5, 0, 3], np.array([5, 0, 3], np.uint8), np.array([5, 9, 0, 9, 3, 9])[::2], []])
def test_indices_become_one_array_in_one_piece(numbers):
    kind, got, *rest = describe(Indices(numbers), (9, 5), "C", 0, 1)
    assert (kind, rest) == ("indices", [None, None])
    assert got.dtype == np.int64
    assert got.flags.c_contiguous
    assert got.tolist() == list(numbers)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([1.0], "not float64 of rank 1"), ([[1, 2]], "not int64 of rank 2"), (3, "of rank 0"), ([True], "not bool")],
)
def test_indices_are_a_flat_array_of_whole_numbers(numbers, text):
    refused(Indices(numbers), (9, 5), text, titin.TypeMismatch)


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_owner_is_asked_for_each_element_and_numbers_are_those_of_memory(order):
    """NumPy's own array in the same order gives the number of each element."""
    shape, ranks = (4, 3), 3
    numbers = np.arange(12).reshape(shape, order=order)
    asked = []

    def owner(i, j):
        asked.append((i, j))
        return np.int32((i * j + i) % ranks)

    shares = [describe(Owner(owner), shape, order, rank, ranks) for rank in range(ranks)]
    expected = [
        sorted(int(numbers[i, j]) for i in range(4) for j in range(3) if (i * j + i) % ranks == rank)
        for rank in range(ranks)
    ]
    assert [share[1].tolist() for share in shares] == expected
    assert all((share[0], *share[2:]) == ("indices", None, None) and share[1].dtype == np.int64 for share in shares)
    assert sorted(asked) == sorted(3 * list(np.ndindex(shape)))
    assert all(type(index) is int for indices in asked for index in indices)


def test_a_rank_that_owns_nothing_has_no_numbers():
    none = describe(Owner(lambda i: 0), (3,), "C", 1, 2)[1]
    assert (none.size, none.dtype) == (0, np.int64)


@pytest.mark.parametrize("found", [2, -1, 0.0, None])
def test_an_owner_that_names_no_rank_is_refused(found):
    refused(Owner(lambda i: found), (3,), f"the owner function gave {found!r} for (0,): there are ranks 0 to 1")


def test_a_halo_is_as_wide_below_and_above_as_it_is_told():
    assert halo(2, 3) == ([2, 2, 2], [2, 2, 2])
    assert halo(np.int64(1), 1) == ([1], [1])
    assert halo((1, 0), 2) == ([1, 0], [1, 0])
    assert halo([(1, 2), 3, np.array([4, 5])], 3) == ([1, 3, 4], [2, 3, 5])


@pytest.mark.parametrize(
    ("given", "text"), [((1, 2), "2 halo widths for an array of 3"), ([(1, 2, 3), 1, 1], "halo=[(1, 2, 3), 1, 1]")]
)
def test_halos_that_do_not_fit_are_refused(given, text):
    with pytest.raises(titin.UsageError, match=re.escape(text)):
        halo(given, 3)


def test_scales_are_those_that_are_known():
    assert scale({}) == Scale(None, None, (), ())
    known = {"dt": 0.5, "total": 9.0, "dx": [0.1, 0.2], "extent": [3.0]}
    assert scale(known) == Scale(dt=0.5, total=9.0, dx=(0.1, 0.2), extent=(3.0,))
