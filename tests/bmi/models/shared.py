"""Models on several ranks, each with another way to get its communicator and to tell the part of a rank."""

from __future__ import annotations

import numpy as np
from base import Base
from zoo import Heat

TEMPERATURE, SOURCE = "plate_surface__temperature", "plate_surface__heat_source"


def share(count, ranks, rank):
    """The first and the end of a rank's share of so many rows."""
    return rank * count // ranks, (rank + 1) * count // ranks


class Slab(Heat):
    """A plate whose rows are shared by the ranks, with a row of ghosts on either side; tells a range and owners."""

    comm = None

    def parallel_initialize(self, comm):
        self.comm = comm

    def begin(self):
        super().begin()
        self.rows = len(self.arrays[TEMPERATURE])
        self.low, self.high = share(self.rows, self.comm.size, self.comm.rank)
        self.cut = slice(max(self.low - 1, 0), min(self.high + 1, self.rows))
        for name, array in self.arrays.items():
            self.arrays[name] = array[self.cut].copy()

    def solve(self, step):
        super().solve(step)
        u, up, down = self.arrays[TEMPERATURE], self.comm.rank - 1, self.comm.rank + 1
        if self.comm.rank > 0:
            u[0] = self.comm.sendrecv(u[1], up, source=up)
        if down < self.comm.size:
            u[-1] = self.comm.sendrecv(u[-2], down, source=down)

    def get_grid_partition_range(self, grid, start, end):
        start[:], end[:] = (self.cut.start, 0), (self.cut.stop, self.shapes[grid][1])

    def get_grid_node_partition(self, grid, partition):
        rows = np.arange(self.cut.start, self.cut.stop)
        owners = self.comm.rank + (rows >= self.high).astype(int) - (rows < self.low)
        partition[:] = np.repeat(owners, self.shapes[grid][1])


class Cooler(Base):
    """Cools each node of a plate by itself; the nodes are dealt out to the ranks, and told by their numbers."""

    inputs = (TEMPERATURE,)
    outputs = (SOURCE,)
    spacing = 0.5
    rank, ranks = 0, 1

    def set_communicator(self, comm):
        self.rank, self.ranks = comm.Get_rank(), comm.Get_size()

    def begin(self):
        whole = np.zeros(tuple(self.config.get("shape", (5, 7))))
        # Backwards, so that the order of a rank's elements is not that of their numbers.
        self.numbers = np.arange(whole.size)[self.rank :: self.ranks][::-1] if self.ranks > 1 else np.arange(whole.size)
        for name, units in ((TEMPERATURE, "K"), (SOURCE, "K s-1")):
            self.add(name, whole.reshape(-1)[self.numbers].copy() if self.ranks > 1 else whole.copy(), units)
        self.shapes[0] = whole.shape

    def solve(self, step):
        # Each node has a source of its own, so that nodes cannot be taken for one another.
        own = 0.001 * self.numbers.reshape(self.arrays[SOURCE].shape)
        self.arrays[SOURCE][...] = 0.01 * (50.0 - self.arrays[TEMPERATURE]) + own

    def get_grid_global_node_nr(self, grid, numbers):
        numbers[:] = self.numbers


class Handled(Slab):
    """Gets its communicator as NextGen gives it: the handle of Fortran in an input variable, before `initialize`."""

    inputs = (SOURCE, "bmi_mpi_comm_handle")

    def __init__(self):
        # The communicator of this class is not given by another way.
        self.parallel_initialize = None

    def set_value(self, name, src):
        if name == "bmi_mpi_comm_handle":
            from mpi4py import MPI

            assert src.dtype == np.int32 and src.shape == (1,)
            self.comm = MPI.Comm.f2py(int(src[0]))
        else:
            super().set_value(name, src)


class Stacked(Heat):
    """Tells no part: the ranks' arrays are blocks of rows, and each rank knows its own grid only. Does not diffuse."""

    def begin(self):
        from mpi4py import MPI

        rank, ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
        super().begin()
        low, high = share(len(self.arrays[TEMPERATURE]), ranks, rank)
        whole, self.k = self.arrays, 0.0
        self.shapes = {}
        for name in list(whole):
            self.add(name, whole[name][low:high].copy(), self.told[name][0])


class Mesh(Base):
    """Numbers at the faces of a mesh, dealt out to the ranks, and one number that all ranks have."""

    inputs = ("mesh_face__rate", "mesh__factor")
    outputs = ("mesh_face__height", "mesh__total")
    comm = None

    def set_communicator(self, comm):
        self.comm = comm

    def begin(self):
        self.numbers = np.arange(self.comm.rank, 8, self.comm.size)
        self.add("mesh_face__height", self.numbers.astype(np.float32), "m", location="face")
        self.add("mesh_face__rate", np.zeros(len(self.numbers), np.float32), "m s-1", location="face")
        self.add("mesh__factor", np.ones(()), "1", grid=1)
        self.add("mesh__total", np.zeros(()), "m", grid=1)

    def solve(self, step):
        self.arrays["mesh_face__height"] += self.arrays["mesh_face__rate"] * np.float32(self.arrays["mesh__factor"])
        # Whole numbers, so that the order of the ranks does not matter.
        self.arrays["mesh__total"][...] = self.comm.allreduce(float(self.arrays["mesh_face__height"].sum()))

    def get_grid_type(self, grid):
        return "scalar" if grid else "unstructured"

    def get_grid_rank(self, grid):
        return 0 if grid else 2

    def get_grid_global_face_nr(self, grid, numbers):
        numbers[:] = self.numbers


class Wrong(Slab):
    """Has a fault, named by the configuration."""

    def begin(self):
        super().begin()
        if self.config["fault"] == "raises" and self.comm.rank == 1:
            raise ArithmeticError("rank 1 is broken")

    def get_grid_partition_range(self, grid, start, end):
        if self.config["fault"] in ("untold", "twice"):
            raise NotImplementedError("get_grid_partition_range")
        super().get_grid_partition_range(grid, start, end)
        if self.config["fault"] == "inclusive":
            end -= 1
        if self.config["fault"] == "outside":
            end += self.rows

    def get_grid_global_node_nr(self, grid, numbers):
        if self.config["fault"] == "untold":
            raise NotImplementedError("get_grid_global_node_nr")
        columns = self.shapes[grid][1]
        numbers[:] = np.arange(self.cut.start * columns, self.cut.stop * columns)

    def get_grid_node_partition(self, grid, partition):
        if self.config["fault"] in ("twice", "ghosts"):
            raise NotImplementedError("get_grid_node_partition")
        super().get_grid_node_partition(grid, partition)
