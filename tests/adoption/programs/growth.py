"""A slow and a fast model: arrays there and back in each step."""

import numpy as np
from record import F_INIT, O_F, O_I, Grid, Instance, Message, S, main, record


def macro():
    instance = Instance({O_I: ["state_out"], S: ["state_in"]})
    while instance.reuse_instance():
        dt, t_max = instance.get_setting("dt", "float"), instance.get_setting("t_max", "float")
        state, t = np.linspace(0.0, 1.0, 17) ** 3, 0.0
        while t + dt <= t_max:
            after = t + 2 * dt
            instance.send("state_out", Message(t, t + dt if after <= t_max else None, Grid(state, ["x"])))
            message = instance.receive("state_in")
            record("from micro", message)
            state = message.data.array.copy()
            state[1:-1] += 0.1 * (state[:-2] - 2 * state[1:-1] + state[2:])
            t += dt


def micro():
    instance = Instance({F_INIT: ["initial"], O_F: ["final"]})
    while instance.reuse_instance():
        k = instance.get_setting("k", "float")
        message = instance.receive("initial")
        record("from macro", message)
        state = message.data.array * (1.0 + k)
        instance.send("final", Message(message.timestamp, message.next_timestamp, Grid(state, message.data.indexes)))


if __name__ == "__main__":
    main(globals())
