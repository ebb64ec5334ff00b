"""Every procedure of MUSCLE3's Fortran modules: its name, its arguments, and the C++ expression that answers it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

#: The codes that procedures return in ``err_code``.
ERRORS = ["success", "domain_error", "out_of_range", "logic_error", "runtime_error", "bad_cast"]

#: The kinds of the modules' numbers, by the names that the modules give them.
KINDS = {
    "int1": "c_int8_t",
    "int2": "c_int16_t",
    "int4": "c_int32_t",
    "int8": "c_int64_t",
    "size": "c_size_t",
    "real4": "c_float",
    "real8": "c_double",
}

#: Operators as the module ymmsl numbers them.
OPERATORS = {"NONE": 0, "F_INIT": 1, "O_I": 2, "S": 3, "B": 4, "O_F": 5}

#: Flags of an instance in the order of their bits.
FLAGS = [
    "DONT_APPLY_OVERLAY",
    "USES_CHECKPOINT_API",
    "KEEPS_NO_STATE_FOR_NEXT_USE",
    "STATE_NOT_REQUIRED_FOR_NEXT_USE",
    "SKIP_MMSF_SEQUENCE_CHECKS",
]

#: The C++ type of each type of a scalar.
SCALARS = {
    "logical": "bool",
    "character": "std::string",
    "int": "int",
    "int1": "std::int8_t",
    "int2": "std::int16_t",
    "int4": "std::int32_t",
    "int8": "std::int64_t",
    "real4": "float",
    "real8": "double",
}

#: The C++ type of each type of a setting.
SETTING_TYPES = {
    "character": "std::string",
    "int8": "std::int64_t",
    "real8": "double",
    "logical": "bool",
    "int8array": "std::vector<std::int64_t>",
    "real8array": "std::vector<double>",
    "real8array2": "std::vector<std::vector<double>>",
}

#: The element types of grids, and the number of dimensions that Fortran can give them.
ELEMENTS = ["logical", "int4", "int8", "real4", "real8"]
RANKS = range(1, 8)

#: Results that a procedure writes into an argument, and the argument's name, unless a procedure has another.
WRITTEN = {"int8array": "value", "real8array": "value", "real8array2": "value", "sizes": "shp", "bytes": "data"}


@dataclass(frozen=True)
class Argument:
    """An argument: its name and type, as in ``SCALARS`` and ``WRITTEN``, or ``size``, ``operator``, a class's name."""

    name: str
    type: str


@dataclass(frozen=True)
class Procedure:
    """A procedure of a class.

    ``answer`` is a C++ expression over ``self`` and the arguments' names. ``result`` is a type as of arguments, or
    empty. ``errors`` tells whether the procedure has the arguments ``err_code`` and ``err_msg``; one without them stops
    the program on an error. ``kind`` is ``plain``, or names a form that the generator knows: ``free``, ``grid``,
    ``elements``, ``names``, and ``create`` for instances.
    """

    name: str
    answer: str = ""
    arguments: tuple[Argument, ...] = ()
    result: str = ""
    errors: bool = False
    has_self: bool = True
    kind: str = "plain"
    element: str = ""
    rank: int = 0
    named: bool = False


@dataclass(frozen=True)
class Class:
    """A class: its prefix in Fortran, its type in C++, its procedures, and names that stand for several of them."""

    prefix: str
    name: str
    cpp: str
    procedures: list[Procedure]
    overloads: dict[str, list[str]] = field(default_factory=dict)

    @property
    def fortran(self) -> str:
        """The name of the type in Fortran."""
        return f"{self.prefix}_{self.name}"


def arguments(text: str) -> tuple[Argument, ...]:
    """Arguments from text such as ``character key, real8 value``."""
    return tuple(Argument(name, type) for type, name in (part.split() for part in text.split(",") if part.strip()))


def method(name: str, result: str, given: str, answer: str, *, errors: bool = False) -> Procedure:
    return Procedure(name, answer, arguments(given), result, errors)


def maker(cls: str, name: str, given: str, answer: str) -> Procedure:
    return Procedure(f"create_{name}" if name else "create", answer, arguments(given), cls, has_self=False)


def settings() -> Class:
    types = {"character": "std::string", "int4": "std::int64_t", **SETTING_TYPES}
    order = ["character", "int4", "int8", "real8", "logical", "int8array", "real8array", "real8array2"]

    def read(name: str) -> str:
        value = f"self.at(key).as<{types[name]}>()"
        return f"narrow({value})" if name == "int4" else value

    return Class(
        "YMMSL",
        "Settings",
        "ymmsl::Settings",
        [
            maker("Settings", "", "", "ymmsl::Settings()"),
            Procedure("free", kind="free"),
            method("equals", "logical", "Settings other", "self == other"),
            method("size", "size", "", "self.size()"),
            method("empty", "logical", "", "self.empty()"),
            *(
                method(f"is_a_{t}", "logical", "character key", f"self.at(key).is_a<{types[t]}>()", errors=True)
                for t in order
            ),
            *(method(f"set_{t}", "", f"character key, {t} value", "self[key] = value") for t in order),
            *(method(f"get_as_{t}", t, "character key", read(t), errors=True) for t in order),
            method("contains", "logical", "character key", "self.contains(key)"),
            method("erase", "size", "character key", "self.erase(key)"),
            method("clear", "", "", "self.clear()"),
            method("key", "character", "size i", "setting_name(self, i)", errors=True),
        ],
        {"set": [f"set_{t}" for t in order]},
    )


def creations(cls: str) -> list[Procedure]:
    """How Data and DataConstRef are made from values."""
    return [
        maker(cls, "nil", "", f"{cls}()"),
        *(maker(cls, t, f"{t} value", f"{cls}(value)") for t in SCALARS if t != "int"),
        maker(cls, "settings", "Settings value", f"{cls}(value)"),
        maker(cls, "copy", f"{cls} value", "value"),
    ]


def grids(cls: str) -> Iterator[Procedure]:
    for named in (False, True):
        for element in ELEMENTS:
            for rank in RANKS:
                name = f"create_grid_{rank}_{element}_{'n' if named else 'a'}"
                yield Procedure(name, "", (), cls, False, False, "grid", element, rank, named)


def elements() -> Iterator[Procedure]:
    for element in ELEMENTS:
        for rank in RANKS:
            yield Procedure(f"elements_{rank}_{element}", errors=True, kind="elements", element=element, rank=rank)


def reading(cls: str) -> list[Procedure]:
    """What Data and DataConstRef tell of themselves."""
    grid_types = ["logical", "real4", "real8", "int4", "int8"]
    return [
        Procedure("free", kind="free"),
        *(method(f"is_a_{t}", "logical", "", f"self.is_a<{cpp}>()") for t, cpp in SCALARS.items()),
        method("is_a_dict", "logical", "", "self.is_a_dict()"),
        method("is_a_list", "logical", "", "self.is_a_list()"),
        *(method(f"is_a_grid_of_{t}", "logical", "", f"self.is_a_grid_of<{SCALARS[t]}>()") for t in grid_types),
        method("is_a_byte_array", "logical", "", "self.is_a_byte_array()"),
        method("is_nil", "logical", "", "self.is_nil()"),
        method("is_a_settings", "logical", "", "self.is_a<ymmsl::Settings>()"),
        method("size", "size", "", "self.size()"),
        *(method(f"as_{t}", t, "", f"self.as<{cpp}>()", errors=True) for t, cpp in SCALARS.items()),
        method("as_settings", "Settings", "", "self.as<ymmsl::Settings>()", errors=True),
        method("as_byte_array", "bytes", "", "Text(self.as_byte_array(), self.size())", errors=True),
        method("get_item_by_key", cls, "character key", "self[key]", errors=True),
        method("get_item_by_index", cls, "size i", "self[from_one(i)]", errors=True),
        method("num_dims", "size", "", "self.shape().size()", errors=True),
        method("shape", "sizes", "", "self.shape()", errors=True),
        *elements(),
        method("has_indexes", "logical", "", "self.has_indexes()", errors=True),
        method("index", "character", "size i", "self.indexes().at(from_one(i))", errors=True),
    ]


def overloads_of_data() -> dict[str, list[str]]:
    return {
        "create": [f"create_{t}" for t in ["nil", *(t for t in SCALARS if t != "int"), "settings", "copy"]],
        "create_grid": [f"create_grid_{r}_{e}_{n}" for r in RANKS for e in ELEMENTS for n in "na"],
        "get_item": ["get_item_by_key", "get_item_by_index"],
        "elements": [f"elements_{r}_{e}" for r in RANKS for e in ELEMENTS],
    }


def data_const_ref() -> Class:
    members = [*creations("DataConstRef"), *grids("DataConstRef"), *reading("DataConstRef")]
    return Class("LIBMUSCLE", "DataConstRef", "libmuscle::DataConstRef", members, overloads_of_data())


def data() -> Class:
    values = [t for t in SCALARS if t != "int"]
    set_item = [
        method(f"set_item_{by}_{t}", "", f"{given}, {type} value", f"self[{place}] = Data(value)", errors=True)
        for by, given, place in (("key", "character key", "key"), ("index", "size i", "from_one(i)"))
        for t, type in [*((t, t) for t in values), ("data", "Data")]
    ]
    members = [
        *creations("Data"),
        *grids("Data"),
        *reading("Data"),
        maker("Data", "dict", "", "Data::dict()"),
        maker("Data", "list", "", "Data::list()"),
        maker("Data", "nils", "size size", "Data::nils(size)"),
        maker("Data", "byte_array_empty", "size size", "Data::byte_array(size)"),
        maker("Data", "byte_array_from_buf", "bytes buf", "Data::byte_array(buf.data, buf.size)"),
        *(method(f"set_{t}", "", f"{t} value", "self = Data(value)") for t in values),
        method("set_data", "", "Data value", "self = value"),
        method("set_nil", "", "", "self = Data()"),
        *set_item,
        method("key", "character", "size i", "self.key(from_one(i))", errors=True),
        method("value", "Data", "size i", "self.value(from_one(i))", errors=True),
    ]
    return Class(
        "LIBMUSCLE",
        "Data",
        "libmuscle::Data",
        members,
        {
            **overloads_of_data(),
            "create_byte_array": ["create_byte_array_empty", "create_byte_array_from_buf"],
            "set": [*(f"set_{t}" for t in values), "set_data"],
            "set_item": [procedure.name for procedure in set_item],
        },
    )


def message() -> Class:
    forms = {
        "t": "real8 timestamp",
        "td": "real8 timestamp, Data data",
        "tnd": "real8 timestamp, real8 next_timestamp, Data data",
        "tds": "real8 timestamp, Data data, Settings settings",
        "tnds": "real8 timestamp, real8 next_timestamp, Data data, Settings settings",
    }

    def made(form: str) -> Procedure:
        given = ", ".join(argument.name for argument in arguments(forms[form]))
        return maker("Message", form, forms[form], f"Message({given})")

    return Class(
        "LIBMUSCLE",
        "Message",
        "libmuscle::Message",
        [
            *map(made, forms),
            Procedure("free", kind="free"),
            method("timestamp", "real8", "", "self.timestamp()"),
            method("set_timestamp", "", "real8 timestamp", "self.set_timestamp(timestamp)"),
            method("has_next_timestamp", "logical", "", "self.has_next_timestamp()"),
            method("next_timestamp", "real8", "", "self.next_timestamp()"),
            method("set_next_timestamp", "", "real8 next_timestamp", "self.set_next_timestamp(next_timestamp)"),
            method("unset_next_timestamp", "", "", "self.unset_next_timestamp()"),
            method("get_data", "DataConstRef", "", "self.data()"),
            method("set_data_d", "", "Data data", "self.set_data(data)"),
            method("set_data_dcr", "", "DataConstRef data", "self.set_data(data)"),
            method("has_settings", "logical", "", "self.has_settings()"),
            method("get_settings", "Settings", "", "self.settings()"),
            method("set_settings", "", "Settings settings", "self.set_settings(settings)"),
            method("unset_settings", "", "", "self.unset_settings()"),
        ],
        {"create": [f"create_{form}" for form in forms], "set_data": ["set_data_d", "set_data_dcr"]},
    )


def ports_description() -> Class:
    return Class(
        "LIBMUSCLE",
        "PortsDescription",
        "libmuscle::PortsDescription",
        [
            maker("PortsDescription", "", "", "PortsDescription()"),
            Procedure("free", kind="free"),
            method("add", "", "operator op, character port", "self[op].push_back(port)"),
            method("num_ports", "size", "operator op", "ports_of(self, op).size()"),
            method("get", "character", "operator op, size i", "ports_of(self, op).at(from_one(i))", errors=True),
        ],
    )


def receiving() -> Iterator[Procedure]:
    for name in ("receive", "receive_with_settings"):
        for suffix, given in {
            "p": "character port_name",
            "pd": "character port_name, Message default_msg",
            "ps": "character port_name, int slot",
            # MUSCLE3 calls the default of this one procedure so.
            "psd": "character port_name, int slot, Message "
            + ("default_message" if name == "receive" else "default_msg"),
        }.items():
            passed = ", ".join(argument.name for argument in arguments(given))
            yield method(f"{name}_{suffix}", "Message", given, f"self.{name}({passed})", errors=True)


def instance() -> Class:
    port = "character port"
    types = list(SETTING_TYPES)

    def setting(name: str, form: int) -> Procedure:
        given = "character name" + (f", {name} default_value" if form == 2 else "")
        passed = "name" + (", default_value" if form == 2 else "")
        answer = f"self.get_setting_as<{SETTING_TYPES[name]}>({passed})"
        return method(f"get_setting_as{form}_{name}", name, given, answer, errors=True)

    is_a = [
        method(
            f"is_setting_a_{t}",
            "logical",
            "character name",
            f"self.get_setting(name).is_a<{SETTING_TYPES[t]}>()",
            errors=True,
        )
        for t in types
    ]
    return Class(
        "LIBMUSCLE",
        "Instance",
        "libmuscle::Instance",
        [
            Procedure("create", result="Instance", has_self=False, kind="create"),
            Procedure("free", kind="free"),
            method("reuse_instance", "logical", "", "self.reuse_instance()"),
            method("error_shutdown", "", "character message", "self.error_shutdown(message)"),
            *is_a,
            *(setting(t, form) for form in (1, 2) for t in types),
            Procedure("list_settings", "self.list_settings()", kind="names"),
            method("list_ports", "PortsDescription", "", "self.list_ports()"),
            method("is_connected", "logical", port, "self.is_connected(port)"),
            method("is_vector_port", "logical", port, "self.is_vector_port(port)"),
            method("is_resizable", "logical", port, "self.is_resizable(port)"),
            method("get_port_length", "int", port, "self.get_port_length(port)"),
            method("set_port_length", "", port + ", int length", "self.set_port_length(port, length)"),
            method("send_pm", "", "character port_name, Message message", "self.send(port_name, message)"),
            method(
                "send_pms", "", "character port_name, Message message, int slot", "self.send(port_name, message, slot)"
            ),
            *receiving(),
            method("resuming", "logical", "", "self.resuming()"),
            method("should_init", "logical", "", "self.should_init()"),
            method("load_snapshot", "Message", "", "self.load_snapshot()"),
            method("should_save_snapshot", "logical", "real8 timestamp", "self.should_save_snapshot(timestamp)"),
            method("save_snapshot", "", "Message message", "self.save_snapshot(message)"),
            method("should_save_final_snapshot", "logical", "", "self.should_save_final_snapshot()"),
            method("save_final_snapshot", "", "Message message", "self.save_final_snapshot(message)"),
        ],
        {
            **{f"get_setting_as_{t}": [f"get_setting_as1_{t}", f"get_setting_as2_{t}"] for t in types},
            "send": ["send_pm", "send_pms"],
            "receive": ["receive_p", "receive_pd"],
            "receive_on_slot": ["receive_ps", "receive_psd"],
            "receive_with_settings": ["receive_with_settings_p", "receive_with_settings_pd"],
            "receive_with_settings_on_slot": ["receive_with_settings_ps", "receive_with_settings_psd"],
        },
    )


YMMSL = [settings()]
LIBMUSCLE = [data_const_ref(), data(), ports_description(), message(), instance()]


def public_names(classes: list[Class]) -> list[str]:
    """The names of types, procedures and overloads of these classes."""
    return [
        name
        for cls in classes
        for name in (
            cls.fortran,
            *(f"{cls.fortran}_{procedure.name}" for procedure in cls.procedures),
            *(f"{cls.fortran}_{name}" for name in cls.overloads),
        )
    ]


__all__ = [
    "ELEMENTS",
    "ERRORS",
    "FLAGS",
    "KINDS",
    "LIBMUSCLE",
    "OPERATORS",
    "SCALARS",
    "WRITTEN",
    "YMMSL",
    "Argument",
    "Class",
    "Procedure",
    "public_names",
]
