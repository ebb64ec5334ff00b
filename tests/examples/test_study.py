"""A hundred rows over four members: each result is that of the model alone, and the row of nonsense has its reason."""

import csv

import numpy as np

FOLDER = "study"


def alone(k, u, dt=0.01, t_max=10.0):
    for _ in range(round(t_max / dt)):
        u += dt * k * u * (1.0 - u)
    return u


def test_each_row_has_the_result_of_the_model_alone(examples):
    examples.call("python3", "table.py", folder=FOLDER)
    run = examples.titin("study.ymmsl", folder=FOLDER, run="run")
    with (examples.folder / FOLDER / "build/results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sorted(int(row["row"]) for row in rows) == list(range(100))
    good = [row for row in rows if row["status"] == "done"]
    assert len(good) == 99
    for row in good:
        np.testing.assert_allclose(float(row["population"]), alone(float(row["k"]), float(row["u"])), rtol=1e-13)
    [bad] = [row for row in rows if row["status"] == "failed"]
    assert float(bad["k"]) == -1.0 and "a rate of growth of -1.0" in bad["reason"]
    assert "1 of 4 members of growth failed (1 allowed)" in (run / "titin_manager.log").read_text()
