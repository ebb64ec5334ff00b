"""Models of these tests, one kind of grid or of values each."""

from __future__ import annotations

import numpy as np
from base import Base


class Heat(Base):
    """Diffusion on a plate, whose edge and source another model may set; it gives its own memory."""

    inputs = ("plate_surface__heat_source",)
    outputs = ("plate_surface__temperature",)
    spacing = 0.5

    def begin(self):
        shape = tuple(self.config.get("shape", (5, 7)))
        self.k = float(self.config.get("k", 0.1))
        u = np.zeros(shape)
        u[shape[0] // 2, shape[1] // 2] = float(self.config.get("peak", 100.0))
        self.add("plate_surface__temperature", u, "K")
        self.add("plate_surface__heat_source", np.zeros(shape), "K s-1")

    def solve(self, step):
        u, source = self.arrays["plate_surface__temperature"], self.arrays["plate_surface__heat_source"]
        inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        u[1:-1, 1:-1] += step * self.k * inner
        u += step * source


class Rod(Base):
    """Diffusion along a line, by double buffering: the memory of the temperature changes with each step."""

    inputs = ("rod__end_temperature",)
    outputs = ("rod__temperature",)

    def begin(self):
        u = np.linspace(0.0, 1.0, int(self.config.get("cells", 9)))
        self.add("rod__temperature", u, "degC")
        self.add("rod__end_temperature", np.zeros(()), "degC", grid=1)

    def solve(self, step):
        u = self.arrays["rod__temperature"].copy()
        u[1:-1] += 0.1 * step * (u[:-2] - 2 * u[1:-1] + u[2:])
        u[-1] = self.arrays["rod__end_temperature"]
        self.arrays["rod__temperature"] = u


class Tank(Base):
    """One number that fills, by values alone: no memory of its own is given."""

    inputs = ("tank__inflow", "tank__level")
    outputs = ("tank__level", "tank__outflow")

    def begin(self):
        self.add("tank__inflow", np.zeros(1), "L s-1")
        self.add("tank__level", np.full(1, float(self.config.get("level", 0.0))), "m3")
        self.add("tank__outflow", np.zeros(1), "m3 s-1")

    def solve(self, step):
        self.arrays["tank__outflow"][:] = 0.1 * self.arrays["tank__level"]
        self.arrays["tank__level"] += step * (self.arrays["tank__inflow"] / 1000 - self.arrays["tank__outflow"])

    def get_grid_type(self, grid):
        return "scalar"

    def get_grid_rank(self, grid):
        return 0

    def get_value_ptr(self, name):
        raise NotImplementedError("the level lies in a register")


class Mesh(Base):
    """Values at the nodes and faces of two triangles and a square, in float32."""

    inputs = ("mesh_face__rate",)
    outputs = ("mesh_node__height",)
    time_units = "hours"

    def begin(self):
        self.add("mesh_node__height", np.arange(6, dtype=np.float32), "m")
        self.add("mesh_face__rate", np.zeros(3, np.float32), "mm", location="face")

    def solve(self, step):
        height, rate = self.arrays["mesh_node__height"], self.arrays["mesh_face__rate"]
        height[::2] += np.float32(step) * rate / np.float32(1000)

    def get_grid_type(self, grid):
        return "unstructured"

    def get_grid_rank(self, grid):
        return 2

    def get_grid_x(self, grid, x):
        x[:] = [0, 1, 2, 0, 1, 2]
        return x

    def get_grid_y(self, grid, y):
        y[:] = [0, 0, 0, 1, 1, 1]
        return y

    def get_grid_edge_count(self, grid):
        return 8

    def get_grid_edge_nodes(self, grid, edge_nodes):
        edge_nodes[:] = [0, 1, 1, 2, 0, 3, 1, 4, 2, 5, 3, 4, 4, 5, 1, 5]
        return edge_nodes

    def get_grid_face_count(self, grid):
        return 3

    def get_grid_nodes_per_face(self, grid, nodes_per_face):
        nodes_per_face[:] = [4, 3, 3]
        return nodes_per_face

    def get_grid_face_nodes(self, grid, face_nodes):
        face_nodes[:] = [0, 1, 4, 3, 1, 2, 5, 1, 5, 4]
        return face_nodes


class Wells(Base):
    """Counts at points, as whole numbers of 32 bits."""

    inputs = ("well__pumped_count",)
    outputs = ("well__count",)
    time_units = "d"

    def begin(self):
        self.add("well__count", np.array([1, 2, 3, 4], np.int32))
        self.add("well__pumped_count", np.zeros(4, np.int32))

    def solve(self, step):
        self.arrays["well__count"] += 1 + self.arrays["well__pumped_count"]

    def get_grid_type(self, grid):
        return "points"

    def get_grid_rank(self, grid):
        return 2

    def get_grid_x(self, grid, x):
        x[:] = [0.0, 10.0, 20.0, 30.0]
        return x

    def get_grid_y(self, grid, y):
        y[:] = [5.0, 5.0, 6.0, 6.0]
        return y


class Edges(Base):
    """Values at the edges and faces of a uniform grid, which have the shape of their number."""

    inputs = ("grid_edge__flux",)
    outputs = ("grid_face__sum",)

    def begin(self):
        self.shapes[0] = (3, 4)
        self.add("grid_edge__flux", np.zeros(17), "kg s-1", location="edge")
        self.add("grid_face__sum", np.arange(6.0), "kg", location="face")

    def solve(self, step):
        self.arrays["grid_face__sum"] += step * self.arrays["grid_edge__flux"].sum()


class Layers(Base):
    """Three dimensions on a rectilinear grid, in Fortran order."""

    inputs = ("layer__flux",)
    outputs = ("layer__head",)

    def begin(self):
        shape = (2, 3, 4)
        self.add("layer__head", np.arange(24.0).reshape(shape), "m")
        self.add("layer__flux", np.zeros(shape), "m s-1")

    def solve(self, step):
        self.arrays["layer__head"] += step * (1 + self.arrays["layer__flux"])

    def get_grid_type(self, grid):
        return "rectilinear"

    def get_grid_x(self, grid, x):
        x[:] = [0, 1, 3, 7]
        return x

    def get_grid_y(self, grid, y):
        y[:] = [0, 1, 3]
        return y

    def get_grid_z(self, grid, z):
        z[:] = [0, -5]
        return z


class Event(Base):
    """Goes from event to event: it has no steps, only times to go to."""

    inputs = ("queue__arrivals",)
    outputs = ("queue__length",)
    time_units = "min"

    def begin(self):
        self.add("queue__length", np.zeros(1))
        self.add("queue__arrivals", np.ones(1))
        self.next = 0.7

    def get_time_step(self):
        raise NotImplementedError("it has no steps")

    def update(self):
        raise NotImplementedError("it has no steps")

    def update_until(self, time):
        while self.next <= time:
            self.arrays["queue__length"] += self.arrays["queue__arrivals"] * self.next
            self.next += 0.7
        self.time = time

    def get_grid_type(self, grid):
        return "scalar"

    def get_grid_rank(self, grid):
        return 0


class Whole(Heat):
    """A plate of which only whole steps are computed."""

    def update_until(self, time):
        raise NotImplementedError("whole steps only")
