"""A pendulum with friction: the model of the campaign, without a word about who runs it."""

import math

TIMES = 10
"""How many angles it gives, one a second."""


def angles(length: float, friction: float, start: float, dt: float = 0.001) -> list[float]:
    """The angle after each second, in radians."""
    angle, speed, result = start, 0.0, []
    for _ in range(TIMES):
        for _ in range(round(1.0 / dt)):
            speed -= dt * (9.81 / length * math.sin(angle) + friction * speed)
            angle += dt * speed
        result.append(angle)
    return result
