"""Every type of data but arrays, alone and nested, there and back."""

from record import O_I, Instance, Message, S, echo, main, record

VALUES = [
    None,
    True,
    False,
    0,
    -1,
    2**63 - 1,
    -(2**63),
    0.1,
    -0.0,
    float("inf"),
    float("nan"),
    5e-324,
    "",
    "é\n\0",
    b"",
    b"\x00\xff",
    memoryview(b"bytes"),
    [],
    {},
    [1, 2.0, "three", None, [True, [b"4"]]],
    (1, (2, 3)),
    {"a": 1, "b": {"c": [1.5, {"d": None}]}, "": "empty", "with space": (1,)},
    [0.1 * number for number in range(1000)],
]


def macro():
    instance = Instance({O_I: ["out"], S: ["back"]})
    while instance.reuse_instance():
        for number, value in enumerate(VALUES):
            instance.send("out", Message(number, number + 1, value))
            record("back", instance.receive("back"))


micro = echo

if __name__ == "__main__":
    main(globals())
