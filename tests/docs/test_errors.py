"""docs/errors.md has a part about each error of every language, under its name there."""

import re

import pytest
from titin import errors

from ..conftest import ROOT

TEXT = (ROOT / "docs/errors.md").read_text()
PARTS = dict(re.findall(r"^### (\w+)\n\n(.*?)(?=^### |\Z)", TEXT, re.MULTILINE | re.DOTALL))


def classes():
    """The classes of Python and C++, with the constant of C that each has."""
    header = (ROOT / "crates/capi/include/titin.h").read_text()
    numbers = {int(number): name for name, number in re.findall(r"(TITIN_ERROR_\w+) = (\d+)", header)}
    for number, name in numbers.items():
        yield errors.BY_NUMBER[number].__name__, name
    cpp = (ROOT / "bindings/cpp/include/titin/error.hpp").read_text()
    yield from re.findall(r"struct (\w+) : detail::Kinded<(\w+)>", cpp)


@pytest.mark.parametrize(("of", "constant"), [one for one in classes() if one[0] != "KeyboardInterrupt"])
def test_each_class_has_a_part_with_its_constant(of, constant):
    assert PARTS[of].startswith(f"`{constant}`")
    # What it means, and what to do.
    assert PARTS[of].count(". ") > 1


def test_no_part_is_about_an_error_that_is_gone():
    assert set(PARTS) == {of for of, _ in classes()} - {"KeyboardInterrupt"}
    assert "`KeyboardInterrupt`" in PARTS["Interrupted"]


def test_the_constants_of_fortran_are_those_of_c():
    fortran = (ROOT / "bindings/fortran/titin_c_constants.f90").read_text()
    named = {name.upper() for name in re.findall(r":: (titin_error_\w+) =", fortran)}
    assert named == {constant for _, constant in classes()}
