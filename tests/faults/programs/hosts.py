"""Coroutines that one process runs as instances: functions of a host, or a task of a program with its own event loop.

One of the coroutines fails as culprit.py does, in the way that HOW in the environment, or the program's argument,
names.
"""

import asyncio
import os
import signal
import sys

import titin.aio

how = sys.argv[1] if __name__ == "__main__" else os.environ["HOW"]


def fail(when: str = "") -> None:
    if how == f"{when}exception":
        raise RuntimeError("the mesh is tangled")
    if how == f"{when}exit":
        os._exit(3)
    if how == f"{when}exit0":
        os._exit(0)
    if how == f"{when}abort":
        os.abort()
    if how == f"{when}kill":
        os.kill(os.getpid(), signal.SIGKILL)


async def culprit() -> None:
    async with titin.aio.Instance(o_i=["out"], s=["in"]) as instance:
        while await instance.reuse():
            for step in range(5):
                await instance.send("out", [step], timestamp=float(step))
                await instance.receive("in")
                if step == 2:
                    fail()
    fail("after-")


async def guest(instance: titin.aio.Instance) -> None:
    while await instance.reuse():
        await instance.receive("in")


fail("before-")
if __name__ == "__main__" and how != "never":
    asyncio.run(culprit())
