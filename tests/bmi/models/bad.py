"""Models that break the Basic Model Interface, one way each."""

from __future__ import annotations

import numpy as np
from bmipy import Bmi
from zoo import Heat


class Lacking:
    """A class with some of the methods."""

    def initialize(self, config):
        pass

    def update(self):
        pass

    def get_component_name(self):
        return "Lacking"


class Abstract(Bmi):
    """A class that derives from bmipy's, and defines nothing."""


class Noisy(Heat):
    """A plate that says when it goes on."""

    def update(self):
        print("update", flush=True)
        super().update()


class Shape(Heat):
    def get_value_ptr(self, name):
        return super().get_value_ptr(name)[:2]


class Type(Heat):
    def get_value_ptr(self, name):
        return super().get_value_ptr(name).astype(np.float32)


class List(Heat):
    def get_value_ptr(self, name):
        return super().get_value_ptr(name).tolist()


class GridShape(Heat):
    def get_grid_shape(self, grid, shape):
        shape[:] = 3
        return shape


class Quaternion(Heat):
    def get_var_type(self, name):
        return "quaternion"


class Raises(Heat):
    def update(self):
        if self.count == 2:
            raise ValueError("negative depth in cell 17")
        super().update()


class Back(Heat):
    def update(self):
        self.time -= 1.0


class Still(Heat):
    def update(self):
        pass


class Fortnights(Heat):
    time_units = "fortnights"


class Endless(Heat):
    def get_end_time(self):
        return np.finfo("d").max


class Timeless(Heat):
    def get_end_time(self):
        return None


class Steps(Heat):
    def get_time_step(self):
        return 0.0


class Far(Heat):
    def update_until(self, time):
        while self.time < time:
            self.update()


class Ending(Heat):
    def finalize(self):
        raise OSError("the disk is full")
