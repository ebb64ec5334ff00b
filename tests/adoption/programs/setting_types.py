"""Settings of each type, asked for as each type; what is not set; defaults."""

from record import Instance, attempt, main, record

NAMES = ["text", "whole", "real", "yes", "wholes", "reals", "table", "none_such"]
TYPES = [None, "str", "int", "float", "bool", "[float]", "[[float]]"]


def whole_numbers(instance, name):
    """The value, or that the type is refused: MUSCLE3 has two exceptions for that, one of them by mistake."""
    try:
        return instance.get_setting(name, "[int]")
    except (KeyError, TypeError, ValueError) as raised:
        return "refused" if isinstance(raised, (TypeError, ValueError)) else "not set"


def solo():
    instance = Instance({})
    while instance.reuse_instance():
        record("list", instance.list_settings())
        for name in NAMES:
            for typ in TYPES:
                attempt(f"{name} as {typ}", instance.get_setting, name, typ, words=4)
            record(f"{name} as [int]", whole_numbers(instance, name))
        for default in (1, "text", [1.5], False, 0):
            attempt("default", instance.get_setting, "none_such", default=default)
            attempt("default for what is set", instance.get_setting, "whole", "int", default=default)
        attempt("default of another type", instance.get_setting, "none_such", "str", default=1)
        attempt("unknown type", instance.get_setting, "whole", "complex", words=4)
    # The settings are known after the last use too.
    attempt("after", instance.get_setting, "whole", "int")
    record("list after", instance.list_settings())


if __name__ == "__main__":
    main(globals())
