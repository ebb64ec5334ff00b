"""The instance of benchmarks/many.py as a coroutine: an empty message by each port, and one on each of the others."""


async def cell(instance):
    """Sends, then receives."""
    ports = instance.ports.values()
    while await instance.reuse():
        for port in ports:
            if port.operator == "o_i":
                await instance.send(port, timestamp=0)
        for port in ports:
            if port.operator == "s":
                await instance.receive(port)
