"""Writes MUSCLE3's Fortran modules over titin, and the C++ behind them, from the table of their procedures.

``generate.py --output DIR`` writes ``ymmsl.f90``, ``libmuscle.f90``, ``libmuscle_mpi.f90`` and ``muscle3_fortran.cpp``,
and copies the two files that they need. They are compiled with the user's compilers.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from table import (
    ERRORS,
    FLAGS,
    KINDS,
    LIBMUSCLE,
    OPERATORS,
    SCALARS,
    WRITTEN,
    YMMSL,
    Argument,
    Class,
    Procedure,
)

HERE = Path(__file__).resolve().parent
WRITTEN_BY = "written by generate.py from table.py: changes belong there"
CLASSES = {cls.name: cls for cls in [*YMMSL, *LIBMUSCLE]}


# ---- Types ----


def fortran_type(type: str) -> str:
    """How a scalar, or an object of a class, is declared."""
    if type in CLASSES:
        return f"type({CLASSES[type].fortran})"
    if type == "operator":
        return "integer(YMMSL_Operator)"
    return {"logical": "logical", "character": "character(*)", "int": "integer"}.get(type) or number_type(type)


def number_type(type: str) -> str:
    return f"{'real' if type.startswith('real') else 'integer'}({KINDS[type]})"


def element_type(type: str) -> str:
    """The type of an element of a grid, as the program has it."""
    return "logical" if type == "logical" else number_type(type)


def c_scalar(type: str) -> str:
    """The C type of a scalar or object, as Fortran declares it."""
    if type in CLASSES:
        return "integer(c_intptr_t)"
    return {"logical": "logical(c_bool)", "int": "integer(c_int)", "operator": "integer(c_int)"}.get(
        type
    ) or number_type(type)


def cpp_scalar(type: str) -> str:
    if type in CLASSES:
        return "std::intptr_t"
    return "int" if type == "operator" else "std::size_t" if type == "size" else SCALARS[type]


#: Arguments that are arrays: their declaration, the C declaration, what is passed, the C++ parameters, the C++ value.
ARRAYS = {
    "int8array": ("integer(c_int64_t), dimension(:)", "integer(c_int64_t)", "std::int64_t"),
    "real8array": ("real(c_double), dimension(:)", "real(c_double)", "double"),
    "real8array2": ("real(c_double), dimension(:, :)", "real(c_double)", "double"),
    "bytes": ("character(len=1), dimension(:)", "character(kind=c_char)", "char"),
    "sizes": ("integer(c_size_t), dimension(:)", "integer(c_size_t)", "std::size_t"),
}


# ---- Arguments ----


def declared(argument: Argument) -> str:
    """The declaration of an argument in Fortran."""
    if argument.type in ARRAYS:
        target = ", target" if argument.type == "bytes" else ""
        return f"{ARRAYS[argument.type][0]}, intent(in){target} :: {argument.name}"
    form = fortran_type(argument.type)
    if argument.type in CLASSES:
        form = form.replace("type(", "class(")
    return f"{form}, intent(in) :: {argument.name}"


def c_declared(argument: Argument) -> list[str]:
    """The declarations of an argument of the C function."""
    name = argument.name
    if argument.type == "character":
        return [f"character(kind=c_char), intent(in) :: {name}(*)", f"integer(c_size_t), value :: {name}_size"]
    if argument.type == "real8array2":
        return [f"real(c_double), intent(in) :: {name}(*)", f"integer(c_size_t), intent(in) :: {name}_size(2)"]
    if argument.type in ARRAYS:
        return [f"{ARRAYS[argument.type][1]}, intent(in) :: {name}(*)", f"integer(c_size_t), value :: {name}_size"]
    return [f"{c_scalar(argument.type)}, value :: {name}"]


def passed(argument: Argument) -> list[str]:
    """What Fortran passes to the C function for an argument."""
    name = argument.name
    if argument.type == "character":
        return [name, f"len({name}, c_size_t)"]
    if argument.type == "real8array2":
        return [name, f"shape({name}, c_size_t)"]
    if argument.type in ARRAYS:
        return [name, f"size({name}, kind=c_size_t)"]
    if argument.type in CLASSES:
        return [f"{name}%ptr"]
    return [f"logical({name}, c_bool)" if argument.type == "logical" else name]


def cpp_parameters(argument: Argument) -> list[str]:
    name = argument.name
    if argument.type == "character":
        return [f"const char *{name}_", f"std::size_t {name}_size"]
    if argument.type == "real8array2":
        return [f"const double *{name}_", f"const std::size_t *{name}_size"]
    if argument.type in ARRAYS:
        return [f"const {ARRAYS[argument.type][2]} *{name}_", f"std::size_t {name}_size"]
    return [
        f"{cpp_scalar(argument.type)} {name}{'_' if argument.type in CLASSES or argument.type == 'operator' else ''}"
    ]


def cpp_value(argument: Argument) -> str:
    """The line that makes the argument's value in C++; empty if the parameter is the value."""
    name, type = argument.name, argument.type
    if type in CLASSES:
        return f"auto &{name} = object<{CLASSES[type].cpp}>({name}_);"
    if type == "operator":
        return f"const Operator {name} = static_cast<Operator>({name}_);"
    if type == "character":
        return f"const std::string {name}({name}_, {name}_size);"
    if type == "bytes":
        return f"const Text {name}({name}_, {name}_size);"
    if type == "real8array2":
        return f"const std::vector<std::vector<double>> {name} = rows_of({name}_, {name}_size);"
    if type in ARRAYS:
        return f"const std::vector<{ARRAYS[type][2]}> {name}({name}_, {name}_ + {name}_size);"
    return ""


# ---- Procedures ----


def own(cls: Class, procedure: Procedure) -> list[Argument]:
    """The object itself, and the arguments."""
    return [*([Argument("self", cls.name)] if procedure.has_self else []), *procedure.arguments]


def c_name(cls: Class, name: str) -> str:
    """The name of the C function; in Fortran it is known as c_CLASS_NAME."""
    return f"titin_muscle3_{cls.name}_{name}"


def joined(parts: Iterable[str], indent: int) -> str:
    """Fortran's list of arguments, on lines that are short enough for every compiler."""
    lines = [""]
    for part in [f"{part}, " for part in parts]:
        # The first line already has the name of what takes the arguments.
        if len(lines[-1]) + len(part) > (35 if len(lines) == 1 else 90):
            lines.append("")
        lines[-1] += part
    text = (" &\n" + " " * indent).join(line.rstrip() for line in lines)
    return text.removesuffix(",")


def head(keyword: str, name: str, names: Iterable[str], tail: str = "") -> str:
    return f"    {keyword} {name}({joined(names, 12)}){tail}\n"


def errors_of(procedure: Procedure) -> tuple[list[str], list[str], list[str]]:
    """The names of the arguments for errors, their declarations, and the lines that end the procedure."""
    if not procedure.errors:
        return [], [], ["call finished()"]
    declarations = [
        "integer, optional, intent(out) :: err_code",
        "character(:), allocatable, optional, intent(out) :: err_msg",
    ]
    # gfortran loses the length of a text that is handed on to another procedure, so the text is set here.
    handed_out = ["if (present(err_msg)) then", "    if (failed()) err_msg = last_text()", "end if"]
    return ["err_code", "err_msg"], declarations, [*handed_out, "call finished(err_code)"]


def body(lines: Iterable[str]) -> str:
    return "".join(f"        {line}\n" if line else "\n" for line in lines)


def plain(cls: Class, procedure: Procedure) -> tuple[str, str, str]:
    """A procedure, the interface of its C function, and the C function."""
    name, given = f"{cls.fortran}_{procedure.name}", own(cls, procedure)
    error_names, error_lines, end = errors_of(procedure)
    call = f"c_{cls.name}_{procedure.name}"
    handed = [text for argument in given for text in passed(argument)]
    names = [argument.name for argument in given]
    declarations = [declared(argument) for argument in given]
    result = procedure.result
    c_names = [line.split(":: ")[1].split("(")[0] for argument in given for line in c_declared(argument)]
    c_lines = [line for argument in given for line in c_declared(argument)]
    parameters = [text for argument in given for text in cpp_parameters(argument)]
    values = [line for argument in given if (line := cpp_value(argument))]
    answer = procedure.answer

    if not result:
        written = head("subroutine", name, [*names, *error_names])
        written += body([*declarations, *error_lines, "", f"call {call}({joined(handed, 12)})", *end])
        written += "    end subroutine\n"
        return (
            written,
            interface(call, c_name(cls, procedure.name), c_names, c_lines),
            cpp("void", c_name(cls, procedure.name), parameters, values, f"{answer};"),
        )

    if result == "character" or result in ARRAYS:
        shaped = result == "real8array2"
        c_names = [*c_names, "data_", "size_"]
        c_lines = [
            *c_lines,
            "type(c_ptr), intent(out) :: data_",
            f"integer(c_size_t), intent(out) :: size_{'(2)' if shaped else ''}",
        ]
        element = "char" if result == "character" else ARRAYS[result][2]
        parameters = [*parameters, f"const {element} **data_", "std::size_t *size_"]
        values = ["*data_ = nullptr;", "size_[0] = size_[1] = 0;" if shaped else "*size_ = 0;", *values]
        given_out = f"give({answer}, *data_, {'size_' if shaped else '*size_'});"
        code = cpp("void", c_name(cls, procedure.name), parameters, values, given_out)
        locals_ = ["type(c_ptr) :: data_", f"integer(c_size_t) :: size_{'(2)' if shaped else ''}"]
        calling = f"call {call}({joined([*handed, 'data_', 'size_'], 12)})"
        declared_c = interface(call, c_name(cls, procedure.name), c_names, c_lines)
        if result == "character":
            written = head("function", name, [*names, *error_names], " result(answer)")
            lines = [*declarations, *error_lines, "character(:), allocatable :: answer", *locals_, "", calling]
            written += body([*lines, "answer = text_at(data_, size_)", *end]) + "    end function\n"
            return written, declared_c, code
        out = WRITTEN[result]
        form = ARRAYS[result][0]
        found = f"{form.split(', dimension')[0]}, pointer :: found_{'(:, :)' if shaped else '(:)'}"
        room = "any(shape(value, c_size_t) < size_)" if shaped else f"size({out}, kind=c_size_t) < size_"
        into = "(:size_(1), :size_(2))" if shaped else "(:size_)"
        written = head("subroutine", name, [*names, out, *error_names])
        written += body(
            [
                *declarations,
                f"{form}, intent(out) :: {out}",
                *error_lines,
                *locals_,
                found,
                "",
                calling,
                *end,
                "if (.not. c_associated(data_)) return",
                f"if ({room}) then",
                f"    call refuse('the array {out} is too small for what {procedure.name} gives')",
                *(f"    {line}" for line in end),
                "    return",
                "end if",
                f"call c_f_pointer(data_, found_, {'size_' if shaped else '[size_]'})",
                f"{out}{into} = found_",
            ]
        )
        return written + "    end subroutine\n", declared_c, code

    is_object = result in CLASSES
    written = head("function", name, [*names, *error_names], " result(answer)")
    into = "answer%ptr" if is_object else "answer"
    written += body(
        [
            *declarations,
            *error_lines,
            f"{fortran_type(result)} :: answer",
            "",
            f"{into} = {call}({joined(handed, 12)})",
            *end,
        ]
    )
    code = cpp(
        cpp_scalar(result),
        c_name(cls, procedure.name),
        parameters,
        values,
        f"return new_object({CLASSES[result].cpp}({answer}));" if is_object else f"return {answer};",
    )
    return (
        written + "    end function\n",
        interface(call, c_name(cls, procedure.name), c_names, c_lines, c_scalar(result)),
        code,
    )


def interface(name: str, symbol: str, names: list[str], declarations: list[str], result: str = "") -> str:
    keyword = "function" if result else "subroutine"
    lines = ["import", *declarations, *([f"{result} :: {name}"] if result else [])]
    text = f'        {keyword} {name}({joined(names, 16)}) &\n                bind(C, name="{symbol}")\n'
    return text + "".join(f"            {line}\n" for line in lines) + f"        end {keyword}\n"


def cpp(result: str, symbol: str, parameters: list[str], values: list[str], answer: str) -> str:
    lines = "".join(f"        {line}\n" for line in [*values, answer])
    form = f"() -> {result} " if result != "void" else ""
    return (
        f"{result} {symbol}({', '.join(parameters)}) {{\n    return guarded([&]{form or ' '}{{\n{lines}    }});\n}}\n\n"
    )


def free(cls: Class, procedure: Procedure) -> tuple[str, str, str]:
    name, call = f"{cls.fortran}_free", f"c_{cls.name}_free"
    written = head("subroutine", name, ["self"])
    written += body([f"class({cls.fortran}), intent(in) :: self", "", f"call {call}(self%ptr)", "call finished()"])
    c = interface(call, c_name(cls, "free"), ["self"], ["integer(c_intptr_t), value :: self"])
    code = cpp("void", c_name(cls, "free"), ["std::intptr_t self"], [], f"delete reinterpret_cast<{cls.cpp} *>(self);")
    return written + "    end subroutine\n", c, code


def grid(cls: Class, procedure: Procedure) -> tuple[str, str, str]:
    """A grid of one type and number of dimensions. All ranks of a type share a C function."""
    name, element = f"{cls.fortran}_{procedure.name}", procedure.element
    indices = [f"index_name_{i}" for i in range(1, procedure.rank + 1)] if procedure.named else []
    colons = ", ".join([":"] * procedure.rank)
    array = "logical(data_array, c_bool)" if element == "logical" else "data_array"
    lengths = [f"len({index}, c_size_t)" for index in indices]
    lines = [
        f"{element_type(element)}, dimension({colons}), intent(in) :: data_array",
        *(f"character(*), intent(in) :: {index}" for index in indices),
        f"type({cls.fortran}) :: answer",
        "",
        f"answer%ptr = c_{cls.name}_grid_{element}({array}, &",
        f"    shape(data_array, c_size_t), {procedure.rank}_c_size_t, &",
        f"    {chained(indices) or repr('')}, &",
        f"    [{joined(lengths, 12)}], .true._c_bool)" if indices else "    [0_c_size_t], .false._c_bool)",
        "call finished()",
    ]
    written = head("function", name, ["data_array", *indices], " result(answer)") + body(lines) + "    end function\n"
    if procedure.rank != 1 or procedure.named:
        return written, "", ""
    call, symbol = f"c_{cls.name}_grid_{element}", c_name(cls, f"grid_{element}")
    c = interface(
        call,
        symbol,
        ["data_array", "extents", "rank", "names", "lengths", "named"],
        [
            f"{c_scalar(element)}, intent(in) :: data_array(*)",
            "integer(c_size_t), intent(in) :: extents(*)",
            "integer(c_size_t), value :: rank",
            "character(kind=c_char), intent(in) :: names(*)",
            "integer(c_size_t), intent(in) :: lengths(*)",
            "logical(c_bool), value :: named",
        ],
        "integer(c_intptr_t)",
    )
    parameters = [
        f"const {SCALARS[element]} *data_array",
        "const std::size_t *extents",
        "std::size_t rank",
        "const char *names",
        "const std::size_t *lengths",
        "bool named",
    ]
    answer = f"return new_grid<{cls.cpp}>(data_array, extents, rank, names, named ? lengths : nullptr);"
    return written, c, cpp("std::intptr_t", symbol, parameters, [], answer)


def chained(names: list[str]) -> str:
    """Texts one after the other, over lines that are short enough."""
    return "// &\n            ".join("//".join(names[i : i + 4]) for i in range(0, len(names), 4))


def elements(cls: Class, procedure: Procedure) -> tuple[str, str, str]:
    """The elements of a grid into an array of the same shape. All ranks of a type share a C function."""
    name, element, rank = f"{cls.fortran}_{procedure.name}", procedure.element, procedure.rank
    colons = ", ".join([":"] * rank)
    error_names, error_lines, end = errors_of(procedure)
    copy = ["call c_f_pointer(data_, found_, shape(elements, c_size_t))", "elements = found_"]
    backwards = ", ".join(map(str, range(rank, 0, -1)))
    if rank > 1:
        copy = [
            "if (c_order) then",
            "    call c_f_pointer(data_, line_, [size(elements, kind=c_size_t)])",
            f"    elements = reshape(line_, shape(elements), order=[{backwards}])",
            "else",
            *(f"    {line}" for line in copy),
            "end if",
        ]
    lines = [
        f"class({cls.fortran}), intent(in) :: self",
        f"{element_type(element)}, dimension({colons}), intent(out) :: elements",
        *error_lines,
        "type(c_ptr) :: data_",
        "logical(c_bool) :: c_order",
        f"{c_scalar(element)}, pointer :: found_({colons})",
        *([f"{c_scalar(element)}, pointer :: line_(:)"] if rank > 1 else []),
        "",
        f"data_ = c_{cls.name}_elements_{element}(self%ptr, shape(elements, c_size_t), {rank}_c_size_t, c_order)",
        *end,
        "if (.not. c_associated(data_)) return",
        *copy,
    ]
    written = head("subroutine", name, ["self", "elements", *error_names]) + body(lines) + "    end subroutine\n"
    if rank != 1:
        return written, "", ""
    call, symbol = f"c_{cls.name}_elements_{element}", c_name(cls, f"elements_{element}")
    c = interface(
        call,
        symbol,
        ["self", "extents", "rank", "c_order"],
        [
            "integer(c_intptr_t), value :: self",
            "integer(c_size_t), intent(in) :: extents(*)",
            "integer(c_size_t), value :: rank",
            "logical(c_bool), intent(out) :: c_order",
        ],
        "type(c_ptr)",
    )
    parameters = ["std::intptr_t self", "const std::size_t *extents", "std::size_t rank", "bool *c_order"]
    answer = f"return elements_of<{SCALARS[element]}>(object<{cls.cpp}>(self), extents, rank, *c_order);"
    return written, c, cpp(f"const {SCALARS[element]} *", symbol, parameters, ["*c_order = false;"], answer)


def names(cls: Class, procedure: Procedure) -> tuple[str, str, str]:
    """A list of names, as an array of texts of equal length."""
    name, call, symbol = (
        f"{cls.fortran}_{procedure.name}",
        f"c_{cls.name}_{procedure.name}",
        c_name(cls, procedure.name),
    )
    lines = [
        f"class({cls.fortran}), intent(in) :: self",
        "character(:), dimension(:), allocatable :: answer",
        "character(:), allocatable :: all_names",
        "type(c_ptr) :: data_",
        "integer(c_size_t) :: size_(2), i",
        "",
        f"call {call}(self%ptr, data_, size_)",
        "call finished()",
        "all_names = text_at(data_, size_(1) * size_(2))",
        "allocate (character(size_(1)) :: answer(size_(2)))",
        "do i = 1, size_(2)",
        "    answer(i) = all_names((i - 1) * size_(1) + 1:i * size_(1))",
        "end do",
    ]
    written = head("function", name, ["self"], " result(answer)") + body(lines) + "    end function\n"
    c = interface(
        call,
        symbol,
        ["self", "data_", "size_"],
        [
            "integer(c_intptr_t), value :: self",
            "type(c_ptr), intent(out) :: data_",
            "integer(c_size_t), intent(out) :: size_(2)",
        ],
    )
    parameters = ["std::intptr_t self_", "const char **data_", "std::size_t *size_"]
    values = ["size_[0] = size_[1] = 0;", "*data_ = nullptr;", f"auto &self = object<{cls.cpp}>(self_);"]
    return written, c, cpp("void", symbol, parameters, values, f"give_names({procedure.answer}, *data_, size_);")


def create(cls: Class, procedure: Procedure, *, mpi: bool = False) -> tuple[str, str, str]:
    """An instance, from the program's command line."""
    name, call = f"{cls.fortran}_create", "c_Instance_create"
    symbol = c_name(cls, "create_mpi" if mpi else "create")
    more = ["communicator", "root"] if mpi else []
    passed_on = ["line", "len(line, c_size_t)", "ports_ptr", "bits", *(f"used_{name}" for name in more)]
    lines = [
        "class(LIBMUSCLE_PortsDescription), optional, intent(in) :: ports",
        "class(LIBMUSCLE_InstanceFlags), optional, intent(in) :: flags",
        *(["integer, optional, intent(in) :: communicator, root"] if mpi else []),
        f"type({cls.fortran}) :: answer",
        "character(:), allocatable :: line",
        "integer(c_intptr_t) :: ports_ptr",
        "integer(c_int) :: bits" + (", used_communicator, used_root" if mpi else ""),
        "",
        "ports_ptr = 0",
        "if (present(ports)) ports_ptr = ports%ptr",
        "bits = 0",
        "if (present(flags)) bits = flags%to_int()",
        *(
            [
                "used_communicator = MPI_COMM_WORLD",
                "if (present(communicator)) used_communicator = communicator",
                "used_root = 0",
                "if (present(root)) used_root = root",
            ]
            if mpi
            else []
        ),
        "line = command_line()",
        f"answer%ptr = {call}({joined(passed_on, 12)})",
        "call finished()",
    ]
    written = head("function", name, ["ports", "flags", *more], " result(answer)") + body(lines) + "    end function\n"
    c = interface(
        call,
        symbol,
        ["line", "line_size", "ports", "flags", *more],
        [
            "character(kind=c_char), intent(in) :: line(*)",
            "integer(c_size_t), value :: line_size",
            "integer(c_intptr_t), value :: ports",
            "integer(c_int), value :: flags",
            *(["integer(c_int), value :: communicator, root"] if mpi else []),
        ],
        "integer(c_intptr_t)",
    )
    parameters = ["const char *line", "std::size_t line_size", "std::intptr_t ports", "int flags"]
    values = [
        "const std::vector<const char *> words = words_of(line, line_size);",
        "const PortsDescription described = ports ? object<PortsDescription>(ports) : PortsDescription();",
    ]
    given = "static_cast<int>(words.size()), words.data(), described, static_cast<InstanceFlags>(flags)"
    if not mpi:
        return written, c, cpp("std::intptr_t", symbol, parameters, values, f"return new_object(Instance({given}));")
    given += ", MPI_Comm_f2c(communicator), root"
    code = cpp(
        "std::intptr_t",
        symbol,
        [*parameters, "MPI_Fint communicator", "int root"],
        values,
        f"return new_object(Instance({given}));",
    )
    return written, c, code


FORMS = {"plain": plain, "free": free, "grid": grid, "elements": elements, "names": names, "create": create}


# ---- Modules ----


def type_of(cls: Class) -> str:
    """The type of a class, with its procedures bound to it."""
    bound = [procedure.name for procedure in cls.procedures if procedure.has_self and procedure.name != "free"]
    lines = [f"    type {cls.fortran}", "        integer(c_intptr_t) :: ptr = 0", "    contains"]
    lines += [f"        procedure :: {name} => {cls.fortran}_{name}" for name in bound]
    for name, members in cls.overloads.items():
        if set(members) <= set(bound):
            lines.append(f"        generic :: {name} => {joined(members, 12)}")
    return "\n".join([*lines, "    end type"]) + "\n\n"


def publics(names: Iterable[str]) -> str:
    return "".join(f"    public :: {name}\n" for name in names)


def constants(prefix: str) -> str:
    lines = [f"    integer, parameter, public :: {prefix}_{name} = {code}\n" for code, name in enumerate(ERRORS)]
    lines += [f"    integer, parameter, public :: {prefix}_{name} = {kind}\n" for name, kind in KINDS.items()]
    return "".join(lines) + "\n"


def operators() -> str:
    lines = [
        f"    integer, parameter, public :: YMMSL_Operator_{name} = {number}\n" for name, number in OPERATORS.items()
    ]
    return "".join([*lines, "    integer, parameter, public :: YMMSL_Operator = c_int\n\n"])


def flags() -> str:
    lines = ["    type, public :: LIBMUSCLE_InstanceFlags"]
    lines += [f"        logical :: {name} = .false." for name in FLAGS]
    lines += ["    contains", "        procedure :: to_int => LIBMUSCLE_InstanceFlags_to_int", "    end type"]
    return "\n".join(lines) + "\n\n"


def flags_as_number() -> str:
    lines = ["class(LIBMUSCLE_InstanceFlags), intent(in) :: self", "integer :: answer", "", "answer = 0"]
    lines += [f"if (self%{name}) answer = answer + {1 << bit}" for bit, name in enumerate(FLAGS)]
    return "    function LIBMUSCLE_InstanceFlags_to_int(self) result(answer)\n" + body(lines) + "    end function\n"


def module(name: str, used: list[str], classes: list[Class], *, mpi: bool = False) -> str:
    """One of the modules."""
    is_ymmsl = classes is YMMSL
    prefix = "YMMSL" if is_ymmsl else "LIBMUSCLE"
    forms = []
    for cls in classes:
        for procedure in cls.procedures:
            if procedure.kind == "create":
                forms.append(create(cls, procedure, mpi=mpi))
            else:
                forms.append(FORMS[procedure.kind](cls, procedure))
    text = f"! Module {name} of MUSCLE3 over titin, {WRITTEN_BY}.\nmodule {name}\n"
    text += "".join(f"    use {one}\n" for one in used) + "    implicit none\n    private\n\n"
    text += constants(prefix) + (operators() if is_ymmsl else flags())
    text += "".join(map(type_of, classes))
    for cls in classes:
        text += publics([cls.fortran, *(f"{cls.fortran}_{procedure.name}" for procedure in cls.procedures)])
        for overload, members in cls.overloads.items():
            text += f"    public :: {cls.fortran}_{overload}\n    interface {cls.fortran}_{overload}\n"
            text += "".join(f"        module procedure {cls.fortran}_{member}\n" for member in members)
            text += "    end interface\n"
        text += constructor(cls)
    text += "\n    interface\n" + "".join(c for _, c, _ in forms) + "    end interface\n\ncontains\n\n"
    text += "\n".join([written for written, _, _ in forms] + ([] if is_ymmsl else [flags_as_number()]))
    return text + "end module\n"


def constructor(cls: Class) -> str:
    """The type's name as a function: what ``create`` does, as in ``LIBMUSCLE_Message(0.0d0)``."""
    members = cls.overloads.get("create", ["create"])
    named = "".join(f"        module procedure {cls.fortran}_{member}\n" for member in members)
    return f"    interface {cls.fortran}\n{named}    end interface\n"


def cpp_source() -> str:
    """The C functions behind all modules."""
    text = f"// The C functions of MUSCLE3's Fortran modules over titin, {WRITTEN_BY}.\n"
    text += '#include "muscle3_support.hpp"\n\nextern "C" {\n\n'
    text += "int titin_muscle3_last_error(const char **text, std::size_t *size) {\n"
    text += "    *text = failure().text.data();\n    *size = failure().text.size();\n    return failure().code;\n}\n\n"
    text += "void titin_muscle3_set_error(const char *text, std::size_t size) {\n"
    text += "    failure().code = runtime_error;\n    failure().text.assign(text, size);\n}\n\n"
    for cls in [*YMMSL, *LIBMUSCLE]:
        for procedure in cls.procedures:
            text += FORMS[procedure.kind](cls, procedure)[2]
    instance = CLASSES["Instance"]
    creation = next(procedure for procedure in instance.procedures if procedure.kind == "create")
    text += f"#ifdef MUSCLE_ENABLE_MPI\n{create(instance, creation, mpi=True)[2]}#endif\n\n"
    return text + '} // extern "C"\n'


def sources() -> Iterator[tuple[str, str]]:
    """The files by their names."""
    support = ["titin_muscle3_support"]
    binding = [", intrinsic :: iso_c_binding"]
    yield "ymmsl.f90", module("ymmsl", [*binding, *support], YMMSL)
    yield "libmuscle.f90", module("libmuscle", [*binding, *support, "ymmsl"], LIBMUSCLE)
    used = [*binding, *support, "ymmsl", "mpi, only: MPI_COMM_WORLD"]
    yield "libmuscle_mpi.f90", module("libmuscle_mpi", used, LIBMUSCLE, mpi=True)
    yield "muscle3_fortran.cpp", cpp_source()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True, help="the folder for the files")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    for name, text in sources():
        (output / name).write_text(text.replace("use , ", "use, "))
    for name in ("muscle3_support.f90", "muscle3_support.hpp"):
        shutil.copy(HERE / name, output)


if __name__ == "__main__":
    main()
