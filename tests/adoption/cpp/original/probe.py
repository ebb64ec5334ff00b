"""Asks everything about settings and ports, in each use."""

from libmuscle import Instance, Message
from record import line, refused
from ymmsl.v0_2 import Operator

OTHERS = {
    "str": "other",
    "int": 7,
    "float": 0.25,
    "bool": True,
    "[int]": [1, 2],
    "[float]": [0.5],
    "[[float]]": [[0.5], [1.5]],
}

instance = Instance(
    {
        Operator.F_INIT: ["in", "lonely", "many[]"],
        Operator.O_I: ["out", "spread[]"],
        Operator.S: ["back", "absent"],
        Operator.O_F: ["done"],
    }
)


def ports() -> None:
    listed = {operator.name: " " + " ".join(sorted(names)) for operator, names in instance.list_ports().items()}
    line("ports", "{" + ", ".join(f"{name}: {listed[name]}" for name in sorted(listed)) + "}")
    for name in ["in", "lonely", "many", "out", "spread", "back", "absent"]:
        line(f"{name} connected", instance.is_connected(name))
        line(f"{name} vector", instance.is_vector_port(name))
        line(f"{name} resizable", instance.is_resizable(name))
        if instance.is_vector_port(name):
            line(f"{name} length", instance.get_port_length(name))
        else:
            refused(f"{name} length", lambda name=name: instance.get_port_length(name))
    for name in ["spread", "in"]:
        refused(f"{name} resized", lambda name=name: instance.set_port_length(name, 5))
    refused("unknown connected", lambda: instance.is_connected("unknown"))
    refused("unknown length", lambda: instance.get_port_length("unknown"))


def settings() -> None:
    line("settings", "".join(f" {name}" for name in instance.list_settings()))
    for name in ["text", "int", "float", "flag", "ints", "floats", "table", "own", "none", "late", "deep.name"]:
        refused(f"{name} read", lambda name=name: line(name, shown(instance.get_setting(name))))
        try:
            found = instance.get_setting(name)
        except KeyError:
            found = "default"
        line(f"{name} or default", shown(found))
        for type, other in OTHERS.items():
            what = f"{name} as {type}"

            def read(name: str = name, type: str = type, what: str = what) -> None:
                expect_number(name, type)
                line(what, instance.get_setting(name, type))

            refused(what, read)

            def read_or(name: str = name, type: str = type, what: str = what, other: object = other) -> None:
                expect_number(name, type)
                try:
                    found = instance.get_setting(name, type)
                except KeyError:
                    found = other
                line(what, found)

            refused(f"{what} or default", read_or)


def expect_number(name: str, type: str) -> None:
    """In Python a bool is an int too, in the other languages it is not."""
    if name == "flag" and type == "int":
        raise TypeError


def shown(found: object) -> object:
    return "text " + found if isinstance(found, str) else found


while instance.reuse_instance():
    ports()
    settings()
    line("in", instance.receive("in"))
    line("lonely", instance.receive("lonely", default=Message(1.5, 2.5, "default")))
    line("many 0", instance.receive("many", 0, default=Message(0.5, None, "default")))
    for slot in range(instance.get_port_length("spread")):
        instance.send("spread", Message(0.0, None, [slot]), slot)
    instance.send("out", Message(0.0, None, "not connected"))
    line("back", instance.receive("back", default=Message(4.5, None, None)))
    line("absent", instance.receive("absent", default=Message(3.5, None, [1])))
    instance.send("done", Message(1.0, None, "done"))
