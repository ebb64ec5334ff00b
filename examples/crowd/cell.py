"""A cell of a ring that conducts heat, as a coroutine: while it waits, other cells run."""


async def cell(instance):
    while await instance.reuse():
        # F_INIT
        u = instance.setting("u", float)
        a = instance.setting("a", float)

        for step in range(instance.setting("steps", int)):
            # O_I
            await instance.send("to_left", u, timestamp=step)
            await instance.send("to_right", u, timestamp=step)

            # S
            left = (await instance.receive("from_left")).data
            right = (await instance.receive("from_right")).data
            u += a * (left - 2.0 * u + right)

        # O_F
        print(instance.name, repr(u), flush=True)
