"""The instance of benchmarks/many.py as a coroutine: sends an empty message on each sending port, and receives one on
each other port."""


async def cell(instance):
    """Sends on all ports, then receives on all ports."""
    ports = instance.ports.values()
    while await instance.reuse():
        for port in ports:
            if port.operator == "o_i":
                await instance.send(port, timestamp=0)
        for port in ports:
            if port.operator == "s":
                await instance.receive(port)
