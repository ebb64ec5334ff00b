"""What the models of these tests share: the part of the Basic Model Interface that is the same for all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from bmipy import Bmi


class Base(Bmi):
    """A model whose variables are arrays of NumPy by name, on uniform grids unless a class says otherwise.

    ``self.arrays`` has the values, ``self.told`` units, location and grid of each, ``self.shapes`` the grids.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    time_units = "s"
    spacing = 1.0

    def initialize(self, config_file):
        self.config = json.loads(Path(config_file).read_text())
        self.step = float(self.config.get("dt", 1.0))
        self.end = float(self.config.get("end", 5.0))
        self.time = 0.0
        self.count = 0
        self.arrays, self.told, self.shapes = {}, {}, {}
        self.begin()

    def begin(self):
        """Makes the arrays."""

    def solve(self, step):
        """Moves the arrays on."""

    def add(self, name, array, units="1", grid=0, location="node"):
        self.arrays[name] = array
        self.told[name] = (units, grid, location)
        self.shapes.setdefault(grid, array.shape)

    def update(self):
        self.solve(self.step)
        self.count += 1
        self.time = self.count * self.step

    def update_until(self, time):
        self.solve(time - self.time)
        self.time = time

    def finalize(self):
        self.arrays = {}

    def get_component_name(self):
        return type(self).__name__

    def get_input_item_count(self):
        return len(self.inputs)

    def get_output_item_count(self):
        return len(self.outputs)

    def get_input_var_names(self):
        return self.inputs

    def get_output_var_names(self):
        return self.outputs

    def get_var_grid(self, name):
        return self.told[name][1]

    def get_var_type(self, name):
        return str(self.arrays[name].dtype)

    def get_var_units(self, name):
        return self.told[name][0]

    def get_var_itemsize(self, name):
        return self.arrays[name].itemsize

    def get_var_nbytes(self, name):
        return self.arrays[name].nbytes

    def get_var_location(self, name):
        return self.told[name][2]

    def get_current_time(self):
        return self.time

    def get_start_time(self):
        return 0.0

    def get_end_time(self):
        return self.end

    def get_time_units(self):
        return self.time_units

    def get_time_step(self):
        return self.step

    def get_value(self, name, dest):
        dest[:] = self.arrays[name].reshape(-1)
        return dest

    def get_value_ptr(self, name):
        return self.arrays[name]

    def get_value_at_indices(self, name, dest, inds):
        dest[:] = self.arrays[name].reshape(-1)[inds]
        return dest

    def set_value(self, name, src):
        self.arrays[name].reshape(-1)[:] = src

    def set_value_at_indices(self, name, inds, src):
        self.arrays[name].reshape(-1)[inds] = src

    def get_grid_rank(self, grid):
        return len(self.shapes[grid])

    def get_grid_size(self, grid):
        return int(np.prod(self.shapes[grid]))

    def get_grid_type(self, grid):
        return "uniform_rectilinear" if self.shapes[grid] else "scalar"

    def get_grid_shape(self, grid, shape):
        shape[:] = self.shapes[grid]
        return shape

    def get_grid_spacing(self, grid, spacing):
        spacing[:] = self.spacing
        return spacing

    def get_grid_origin(self, grid, origin):
        origin[:] = 0.0
        return origin

    def get_grid_x(self, grid, x):
        raise NotImplementedError("get_grid_x")

    def get_grid_y(self, grid, y):
        raise NotImplementedError("get_grid_y")

    def get_grid_z(self, grid, z):
        raise NotImplementedError("get_grid_z")

    def get_grid_node_count(self, grid):
        return self.get_grid_size(grid)

    def get_grid_edge_count(self, grid):
        raise NotImplementedError("get_grid_edge_count")

    def get_grid_face_count(self, grid):
        raise NotImplementedError("get_grid_face_count")

    def get_grid_edge_nodes(self, grid, edge_nodes):
        raise NotImplementedError("get_grid_edge_nodes")

    def get_grid_face_edges(self, grid, face_edges):
        raise NotImplementedError("get_grid_face_edges")

    def get_grid_face_nodes(self, grid, face_nodes):
        raise NotImplementedError("get_grid_face_nodes")

    def get_grid_nodes_per_face(self, grid, nodes_per_face):
        raise NotImplementedError("get_grid_nodes_per_face")
