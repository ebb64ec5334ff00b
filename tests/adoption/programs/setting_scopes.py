"""Which value an instance gets: that of its full name, its component, of all."""

from record import Instance, attempt, main, record


def member():
    instance = Instance({})
    while instance.reuse_instance():
        record("list", instance.list_settings())
        for name in ("a", "b", "c", "d"):
            attempt(name, instance.get_setting, name, words=4)


if __name__ == "__main__":
    main(globals())
