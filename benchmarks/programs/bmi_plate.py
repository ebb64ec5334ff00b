"""Models with the Basic Model Interface for the benchmark ``bmi``, and the loop around two of them by hand.

Arguments of the loop by hand: the class of the second model, the cells along a side, the steps, and the file for the
time, which gets a line "CELLS SECONDS" with the seconds of a step.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

#: Steps before those that are timed.
WARM = 4


class Plate:
    """Diffusion on a square, and what another model gives to each cell. It gives its own memory, as arrays of NumPy."""

    def initialize(self, config):
        """``config`` is a file with the cells along a side, the steps, and the file for the time of a step."""
        side, steps, self.result = Path(config).read_text().split()
        self.shape, self.steps = (int(side), int(side)), int(steps)
        self.u, self.source, self.work = np.random.rand(*self.shape), np.zeros(self.shape), np.zeros(self.shape)
        self.step = 0
        self.begun = 0.0

    def solve(self):
        u, work = self.u, self.work
        work[1:-1, 1:-1] = u[:-2, 1:-1]
        work[1:-1, 1:-1] += u[2:, 1:-1]
        work[1:-1, 1:-1] += u[1:-1, :-2]
        work[1:-1, 1:-1] += u[1:-1, 2:]
        work *= 0.2
        u *= 0.2
        u += work
        np.multiply(self.source, 1e-3, out=work)
        u += work

    def update(self):
        if self.step == WARM:
            self.begun = time.perf_counter()
        self.solve()
        self.step += 1
        if self.step == self.steps and self.result != "-":
            seconds = (time.perf_counter() - self.begun) / (self.steps - WARM)
            Path(self.result).write_text(f"{self.u.size} {seconds!r}\n")

    def finalize(self):
        self.u = self.source = self.work = np.zeros(0)

    def get_component_name(self):
        return type(self).__name__

    def get_input_var_names(self):
        return ("source",)

    def get_output_var_names(self):
        return ("u",)

    def get_var_type(self, name):
        return "float64"

    def get_var_units(self, name):
        return "K"

    def get_var_itemsize(self, name):
        return 8

    def get_var_nbytes(self, name):
        return self.u.nbytes

    def get_var_grid(self, name):
        return 0

    def get_grid_type(self, grid):
        return "uniform_rectilinear"

    def get_grid_rank(self, grid):
        return 2

    def get_grid_shape(self, grid, shape):
        shape[:] = self.shape
        return shape

    def get_current_time(self):
        return float(self.step)

    def get_start_time(self):
        return 0.0

    def get_end_time(self):
        return float(self.steps)

    def get_time_step(self):
        return 1.0

    def get_time_units(self):
        return "s"

    def get_value_ptr(self, name):
        return getattr(self, name)

    def get_value(self, name, values):
        values[:] = getattr(self, name).reshape(-1)
        return values

    def set_value(self, name, values):
        getattr(self, name).reshape(-1)[:] = values


class Mirror(Plate):
    """It only holds what it is given: the time of a step is that of the other model and of the coupling."""

    def solve(self):
        pass


def main() -> None:
    other, side, steps, result = sys.argv[1:]
    models = [Plate(), {"Plate": Plate, "Mirror": Mirror}[other]()]
    for model, file in zip(models, (result, "-")):
        Path("config.txt").write_text(f"{side} {steps} {file}")
        model.initialize("config.txt")
    while models[0].get_current_time() < models[0].get_end_time():
        models[1].set_value("source", models[0].get_value_ptr("u").reshape(-1))
        models[0].set_value("source", models[1].get_value_ptr("u").reshape(-1))
        for model in models:
            model.update()
    for model in models:
        model.finalize()


if __name__ == "__main__":
    main()
