"""The serial peer: `peer.py PROGRAM LANGUAGE` sends each array whole, and checks the arrays that come back."""

import sys

import numpy as np
import titin

from cases import PROGRAMS

STEPS = 2

cases = PROGRAMS[sys.argv[1], sys.argv[2]]
with titin.Instance(o_i=list(cases), s=[f"{name}_back" for name in cases]) as instance:
    instance.reuse()
    out = {name: instance.field(name, *case) for name, case in cases.items()}
    back = {name: instance.field(f"{name}_back", *case) for name, case in cases.items()}
    for step in range(STEPS):
        for name, (shape, dtype) in cases.items():
            numbers = 1000 * step + np.arange(np.prod(shape)).reshape(shape)
            sent = (numbers * (1 + 2j) if dtype.startswith("c") else numbers).astype(dtype)
            out[name].send(sent, timestamp=float(step), next_timestamp=step + 1.0 if step + 1 < STEPS else None)
            cases[name] = shape, dtype, sent
        for name, (shape, dtype, sent) in cases.items():
            got = np.full(shape, -5, dtype)
            stamps = back[name].receive(got)
            assert stamps.timestamp == step, (name, stamps)
            assert np.array_equal(got, sent + 1), (name, step, got)
            cases[name] = shape, dtype
