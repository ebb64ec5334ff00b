"""A bridge between two timelines, with each of its settings, and two lanes."""

from record import O_I, Instance, Message, S, main, record


def fast():
    instance = Instance({O_I: ["a", "b"]})
    while instance.reuse_instance():
        for step in range(9):
            following = 0.5 * (step + 1) if step < 8 else None
            for name in ("a", "b"):
                instance.send(name, Message(0.5 * step, following, f"{name}{step}"))


def slow():
    instance = Instance({O_I: ["clock"], S: ["a_in", "b_in"]})
    while instance.reuse_instance():
        for step in range(3):
            time = 0.25 + 1.4 * step
            instance.send("clock", Message(time, time + 1.4 if step < 2 else None))
            for name in ("a_in", "b_in"):
                record(name, instance.receive(name))


if __name__ == "__main__":
    main(globals())
