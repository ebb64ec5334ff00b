"""How many arguments a user's function needs."""

from __future__ import annotations

import functools

import pytest
from titin.calls import needed


def two(a, b, c=3, *rest, d, e=5, **others): ...


class Foreign:
    """A function without a signature, like some functions of foreign code."""

    __signature__ = "unknown"

    def __call__(self, *given): ...


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (two, 2),
        (functools.partial(two, 1), 1),
        (lambda: None, 0),
        (lambda *all_of_them: None, 0),
        (lambda one=1: None, 0),
        (lambda one, /: None, 1),
        ("".join, 1),
        (Foreign(), 1),
    ],
)
def test_needed_are_arguments_by_position_without_a_default(function, count):
    assert needed(function) == count
