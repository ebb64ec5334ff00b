"""Two models that step together and exchange messages in each step."""

from record import O_I, Instance, Message, S, main, record


def step_together(first):
    instance = Instance({O_I: ["out"], S: ["in"]})
    while instance.reuse_instance():
        value = 1.0 if first else 2.0
        for step in range(4):
            instance.send("out", Message(step, step + 1 if step < 3 else None, value))
            message = instance.receive("in")
            record("in", message)
            value = 0.5 * (value + message.data)


def left():
    step_together(True)


def right():
    step_together(False)


if __name__ == "__main__":
    main(globals())
