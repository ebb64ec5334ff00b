"""Ten members under settings overlays: mean and spread agree with the exact solution."""

import re

import numpy as np
import pytest

FOLDER = "ensemble"


def direct(members=10, steps=20, dt=0.5, micro_dt=0.01):
    """Mean and spread after each step of the same members, stepped in one program."""
    places, weights = np.polynomial.hermite_e.hermegauss(members)
    weights /= weights.sum()
    rates = 1.0 + 0.2 * places
    u = np.full(members, 0.01)
    rows = []
    for _ in range(steps):
        for _ in range(round(dt / micro_dt)):
            u += micro_dt * rates * u * (1.0 - u)
        mean = weights @ u
        rows.append((mean, np.sqrt(weights @ (u - mean) ** 2)))
    return np.array(rows)


@pytest.mark.parametrize("language", ["python", "c"])
def test_each_member_has_its_own_rate(examples, language):
    examples.call("make", "build/c/micro", folder="reaction-diffusion")
    micro = f"../reaction-diffusion/{language}/micro.ymmsl"
    run = examples.titin("ensemble.ymmsl", micro, folder=FOLDER, run=language)
    rows = np.load(run / "instances/result/workdir/statistics.npy")
    np.testing.assert_allclose(rows[:, 1:], direct(), rtol=1e-12)

    said = examples.call("python3", "plot.py", f"build/{language}", "-o", "build/out.svg", folder=FOLDER)
    errors = [float(error) for error in re.findall(r"within ([\d.]+) of the exact one", said)]
    assert len(errors) == 2 and max(errors) < 0.01, said
