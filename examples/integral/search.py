#!/usr/bin/env python3
"""Searches for the limit up to which an integral is a half: a serial program that asks for one integral in each
step."""

import math

import titin

with titin.Instance(o_i=["limit"], s=["integral"]) as instance:
    while instance.reuse():
        # F_INIT
        goal, x, off = instance.setting("goal", float), 0.0, 1.0
        print("step  limit          integral")

        step = 0
        while abs(off) > 1e-12:
            # O_I
            instance.send("limit", x, timestamp=float(step))

            # S: Newton's method; the integrand is the derivative of the integral.
            integral = instance.receive("integral").data
            print(f"{step:4}  {x:.10f}   {integral:.12f}")
            off = integral - goal
            x -= off / math.exp(-x * x)
            step += 1

        error = abs(math.sqrt(math.pi) / 2 * math.erf(x) - goal)
        print(f"within {error:.1e} of the error function (allowed: 1e-10)")
        if error > 1e-10:
            raise ValueError("the limit that was found is wrong")
