#!/usr/bin/env python3
"""The pendulum as a member of a study: the sampler of titin gives it its settings."""

import numpy as np
import titin
from pendulum import angles

with titin.Instance(f_init=["row"], o_f=["result"]) as instance:
    while instance.reuse():
        # F_INIT
        instance.receive("row")
        length, friction, start = (instance.setting(name, float) for name in ("length", "friction", "start"))

        # S
        result = angles(length, friction, start)

        # O_F
        instance.send("result", np.array(result), timestamp=float(len(result)))
