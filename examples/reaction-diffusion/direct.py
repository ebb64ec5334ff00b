"""The same equations stepped in one program: what the coupled pair must give, to the bit."""

import numpy as np


def solution(*, cells, dx, d, k, macro_dt, macro_t_max, micro_dt, micro_t_max):
    """The last state, and the place of the front after every macro step."""
    u = np.zeros(cells)
    u[: cells // 10] = 1.0
    a = d * macro_dt / (dx * dx)
    front = []
    for _ in range(round(macro_t_max / macro_dt)):
        for _ in range(round(micro_t_max / micro_dt)):
            u += micro_dt * k * u * (1.0 - u)
        u[1:-1] = u[1:-1] + a * (u[:-2] - 2.0 * u[1:-1] + u[2:])
        u[0], u[-1] = u[1], u[-2]
        front.append(np.interp(-0.5, -u, np.arange(cells) * dx))
    return u, np.array(front)
