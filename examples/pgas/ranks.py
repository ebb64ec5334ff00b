#!/usr/bin/env python3
"""Both fields arrive in an MPI program, where each rank has some rows."""

import numpy as np
import titin
from mpi4py import MPI

comm = MPI.COMM_WORLD
with titin.Instance(s=["temperature", "velocity"], comm=comm) as instance:
    nx, ny, steps = (instance.setting(name, int) for name in ("nx", "ny", "steps"))
    rows = titin.Grid((comm.size, 1))
    x, y = np.array_split(np.arange(1, nx + 1), comm.size)[comm.rank][:, None], np.arange(1, ny + 1)
    right = {"temperature": lambda t: t + x * y, "velocity": lambda t: t * (x + y)}
    fields = {name: instance.field(name, (nx, ny), float, owned=rows) for name in right}
    arrays = {name: np.zeros((len(x), ny)) for name in right}
    coupled = dict.fromkeys(right, 0)

    while instance.reuse():
        for _ in range(steps):
            for name, field in fields.items():
                # S: None where the description couples nothing at this step.
                stamps = field.receive(arrays[name])
                if stamps is None:
                    continue
                coupled[name] += 1
                # Elements that are not coupled are zero.
                if not np.isin(arrays[name] - right[name](stamps.timestamp) * (arrays[name] != 0), 0).all():
                    raise ValueError(f"a number of rank {comm.rank} is wrong")

    for name, array in arrays.items():
        came = comm.reduce(np.count_nonzero(array))
        if comm.rank == 0:
            numbers = f"{came} of {nx * ny} numbers, in the rows of {comm.size} ranks"
            print(f"{name}: {coupled[name]} of {steps} steps, {numbers}")
