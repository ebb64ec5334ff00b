"""A topology written by a program: a hundred instances in a ring conduct heat, in agreement with the exact solution."""

import re


def test_a_hundred_instances_agree_with_the_exact_solution(examples):
    examples.call("make", folder="ring")
    run = examples.titin("build/ring.ymmsl", folder="ring", run="run")
    assert len(list((run / "instances").iterdir())) == 100
    said = examples.call("python3", "plot.py", run, "-o", "build/out.svg", folder="ring")
    assert float(re.search(r"within (\S+) of the exact solution", said)[1]) < 1e-12
