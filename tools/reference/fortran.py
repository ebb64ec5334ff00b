"""The names of Fortran, from the modules.

Declarations there begin a line, and comments with `!>` describe what follows.
"""

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field

from reference import ROOT, Entry, Page, Section, c, paragraphs

FOLDER = ROOT / "bindings/fortran"
MODULES = ["titin", "titin_path", "titin_mpi", "titin_mpi_f08", "titin_coarray", "titin_ga"]
#: The objects of the types in examples of calls.
OBJECTS = {
    "path_type": "path",
    "path_request_type": "request",
    "path_listener_type": "listener",
    "titin_ga_field": "field",
}


@dataclass
class Procedure:
    kind: str
    arguments: list[str]
    text: str
    optional: set[str] = field(default_factory=set)


@dataclass
class Type:
    name: str
    extends: str | None
    text: str
    #: Names of bindings with their specific procedures, and the text.
    bindings: list[tuple[list[tuple[str, list[str]]], str]] = field(default_factory=list)


@dataclass
class Module:
    text: str = ""
    public: list[list[str]] = field(default_factory=list)
    types: dict[str, Type] = field(default_factory=dict)
    procedures: dict[str, Procedure] = field(default_factory=dict)
    generics: dict[str, list[str]] = field(default_factory=dict)


def statements(lines: Iterable[str]) -> Iterable[tuple[str, list[str], bool]]:
    """The statements of a file with their comments, and whether one stands right below the one before."""
    text: list[str] = []
    statement, beside = "", False
    for line in lines:
        line = line.strip()
        if line.startswith("!"):
            text = [*text, re.sub(r"^!> ?", "", line)] if line.startswith("!>") else []
        elif not line:
            text, beside = [], False
        else:
            statement += re.sub(r"\s*&?\s*(?: ! .*)?$", "", line.removeprefix("&")) + " "
            code = line.split(" !")[0].rstrip()
            if not code.endswith("&"):
                yield statement.strip(), text, beside
                statement, text, beside = "", [], True


def names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def read(name: str) -> Module:
    """What a module declares."""
    module, lines = Module(), (FOLDER / f"{name}.f90").read_text().splitlines()
    top = []
    for line in lines:
        if not line.startswith("!"):
            break
        top.append(re.sub(r"^!>? ?", "", line))
    module.text = paragraphs([re.sub(r"^   (?=\S)", "    ", line) for line in top])
    here: Type | None = None
    procedure: Procedure | None = None
    waiting: list[str] = []
    generic = ""
    for statement, text, beside in statements(lines[len(top) :]):
        if match := re.match(r"public :: (.*)", statement):
            module.public.append(names(match[1]))
        elif match := re.match(r"type(?:, (?:abstract|extends\((\w+)\)|bind\(C\)))* :: (\w+)$", statement):
            here = module.types[match[2]] = Type(match[2], match[1], paragraphs(text))
        elif statement == "end type":
            here = None
        elif here and (match := re.match(r"(procedure|generic)((?:, \w+)*) :: (.*)", statement)):
            if "private" in match[2]:
                waiting = text
            elif not match[3].startswith("assignment"):
                bind(here, match[1], match[3], text or waiting, beside)
                waiting = []
        elif match := re.match(r"interface (\w+)", statement):
            generic = match[1]
        elif generic and (match := re.match(r"(?:module )?procedure :: (.*)", statement)):
            module.generics.setdefault(generic, []).extend(names(match[1]))
        elif statement == "end interface":
            generic = ""
        elif match := re.match(r"(?:[\w()=, ]* )?(subroutine|function) (\w+)\(([^)]*)\)", statement):
            if not statement.startswith("end "):
                given = names(match[3]) if match[3].strip() else []
                procedure = module.procedures[match[2]] = Procedure(match[1], given, paragraphs(text))
        elif procedure:
            inside = [statement]
            if match := re.match(r'include "(.*)"', statement):
                inside = [one for one, _, _ in statements((FOLDER / match[1]).read_text().splitlines())]
            for one in inside:
                if match := re.match(r".*\boptional\b.* :: (.*)", one):
                    procedure.optional |= {re.sub(r"\(.*", "", part).strip() for part in names(match[1])}
    return module


def bind(here: Type, kind: str, text: str, comment: list[str], beside: bool) -> None:
    """Adds bindings to a type. Those without a comment, right below others, belong to these."""
    if kind == "generic":
        name, specifics = text.split(" => ")
        found = [(name.strip(), names(specifics))]
    else:
        pairs = [part.split(" => ") for part in names(text)]
        found = [(pair[0].strip(), [pair[-1].strip()]) for pair in pairs]
    if comment or not beside or not here.bindings:
        here.bindings.append((found, paragraphs(comment)))
    else:
        here.bindings[-1][0].extend(found)


def call(name: str, procedure: Procedure, skip: int) -> str:
    """A call, with optional arguments in brackets."""
    given = procedure.arguments[skip:]
    plain = [one for one in given if one not in procedure.optional]
    optional = [one for one in given if one in procedure.optional]
    arguments = ", ".join(plain) + "".join(f" [, {one}]" for one in optional)
    if not plain:
        arguments = arguments.strip().replace("[, ", "[", 1)
    whole = f"{'call ' if procedure.kind == 'subroutine' else 'result = '}{name}({arguments})"
    return " &\n".join(textwrap.wrap(whole, 96, subsequent_indent="      ", break_long_words=False))


class Reader:
    """All modules, since types are made of layers in several of them."""

    def __init__(self) -> None:
        self.modules = {path.stem: read(path.stem) for path in sorted(FOLDER.glob("titin*.f90"))}
        self.types = {name: one for module in self.modules.values() for name, one in module.types.items()}
        self.constants = {name: entry for entry in c.page().entries() for name in entry.names}

    def members(self, one: Type, of: str) -> list[Entry]:
        owner = next(module for module in self.modules.values() if one.name in module.types)
        short = OBJECTS.get(of, of.removeprefix("titin_"))
        found = []
        for bindings, text in one.bindings:
            signatures = [
                call(f"{short}%{name}", owner.procedures[specific], 1)
                for name, specifics in bindings
                for specific in specifics
                if specific in owner.procedures
            ]
            found.append(Entry([f"{of}%{name}" for name, _ in bindings], list(dict.fromkeys(signatures)), text))
        known = {name for entry in found for name in entry.names}
        base = self.members(self.types[one.extends], of) if one.extends else []
        return found + [entry for entry in base if not known.issuperset(entry.names)]

    def entry(self, name: str) -> Entry | None:
        """The entry of a type, procedure or interface; None for a constant."""
        if name in self.types:
            one = self.types[name]
            return Entry([name], [f"type({name})"], one.text, members=self.members(one, name))
        for module in self.modules.values():
            if name in module.generics:
                specifics = [self.procedure(one) for one in module.generics[name]]
                return Entry([name], [call(name, one, 0) for one in specifics if one], module.text)
            if name in module.procedures and name not in c_names():
                procedure = module.procedures[name]
                return Entry([name], [call(name, procedure, 0)], procedure.text)
        return None

    def procedure(self, name: str) -> Procedure | None:
        return next((one.procedures[name] for one in self.modules.values() if name in one.procedures), None)

    def section(self, name: str) -> Section:
        module = self.modules[name]
        section = Section(f"Module `{name}`", module.text, source=f"bindings/fortran/{name}.f90")
        for group in module.public:
            constants: dict[str, Entry] = {}
            for one in group:
                entry = self.entry(one)
                if entry:
                    section.entries.append(entry)
                    continue
                same = self.constants[one.upper()]
                key = same.names[0]
                text = f"As [`{one.upper()}`](c.md#{one.upper()}) in C. " + same.text
                of_constants = constants.setdefault(key, Entry([], [], text, same.title))
                of_constants.names.append(one)
                of_constants.signatures.append(one)
            section.entries += constants.values()
        return section


def c_names() -> set[str]:
    """The bare interfaces of the C functions, which `titin_c` has."""
    bare = "".join(path.read_text() for path in FOLDER.glob("titin_c_*.f90"))
    return set(re.findall(r"(?:function|subroutine) (titin_\w+)\(", bare))


def page() -> Page:
    reader = Reader()
    return Page(
        "Fortran: every name",
        "fortran",
        "Made from the modules. [The Fortran interface in short](../fortran.md) has an example, and says what goes "
        "with what. Arguments in brackets are optional. The module `titin_c` has the functions of [C](c.md).",
        [reader.section(name) for name in MODULES],
    )
