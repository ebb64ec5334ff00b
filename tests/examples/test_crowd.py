"""A thousand instances in one process conduct heat, in agreement with the exact solution."""

import re

import pytest

from ..conftest import configuration


@pytest.mark.parametrize("language", ["c", "python"])
def test_a_thousand_instances_agree_with_the_exact_solution(examples, language):
    examples.call("make", folder="crowd")
    run = examples.titin(f"build/{language}.ymmsl", folder="crowd", run=language)
    assert [folder.name for folder in (run / "instances").iterdir()] == ["crowd"]
    hosted = configuration(run)["programs"]["cell"]["titin"]
    assert ("library" if language == "c" else "function") in hosted
    said = examples.call("python3", "compare.py", run, folder="crowd")
    assert float(re.search(r"within (\S+) of the exact solution", said)[1]) < 1e-12
