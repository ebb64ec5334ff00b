"""Writes what a CxA file has said as a description."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from .filters import converted
from .record import Component, Coupling, CxaError, Record, Value

#: Properties that say how an instance is started, and are no settings.
OF_STARTS = {
    "command",
    "args",
    "debugger",
    "mpiexec_command",
    "mpiexec_args",
    "script",
    "matlab_command",
    "matlab_args",
}
#: Endings of the classes of terminals that titin has components for.
SINKS = ("NullSink", "PrintSink", "FileSink")
SOURCES = ("FileSource",)
PLAIN = re.compile(r"[A-Za-z_./$][\w./$+-]*")
LARGEST = 2**63 - 1
WORDS_OF_YAML = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}

OPERATORS = """\
# A CxA names no operators. Every port that sends is o_i here, every port that receives is s, and all components step
# together (matching_timelines), unless a line below says otherwise. Where each message of a component calls another one
# anew, make the receiving ports of that one f_init and its answering ports o_f, and take it out of matching_timelines.
"""


@dataclass
class Part:
    """A component of the description."""

    said: Component
    name: str
    sends: list[str] = field(default_factory=list)
    receives: list[str] = field(default_factory=list)
    implementation: str = ""
    is_called: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def java(self) -> str:
        """The name of the class, without its package."""
        return self.said.java_class.rpartition(".")[2]


def description(record: Record, path: Path) -> str:
    """The text of the description for a CxA file."""
    parts = {component.name: Part(component, name_of(component.name)) for component in record.components}
    if not parts:
        raise CxaError(f"{path} defines no instance")
    names = [part.name for part in parts.values()]
    for part in parts.values():
        if names.count(part.name) > 1:
            raise CxaError(
                f"{path}: two instances would have the name {part.name} in titin: give {part.said.name!r} another"
            )
    for coupling in record.couplings:
        add_once(parts[coupling.sender].sends, port_of(coupling.sender, coupling.out))
        add_once(parts[coupling.receiver].receives, port_of(coupling.receiver, coupling.into))
    for part in parts.values():
        both = set(part.sends) & set(part.receives)
        if both:
            raise CxaError(
                f"{path}: {part.name} sends and receives on port '{min(both)}', and a port has one operator in titin: "
                "give one of the two another name, in the file and in the program"
            )
        choose(part)
    find_called(parts, record)
    model = name_of(path.name.removesuffix(".rb").removesuffix(".cxa"))
    if model in names:
        model += "_model"  # a program has the name already
    sections = [
        f"# Made from {one_line(path.name)[1:-1]}, a CxA of MUSCLE 2, by titin convert.\n",
        OPERATORS,
        *(f"# Note: {note}.\n" for note in record.notes),
        f"ymmsl_version: v0.2\nmodels:\n  {scalar(model)}:\n    components:\n",
        *(component_text(part) for part in parts.values()),
        conduits_text(record.couplings, parts),
        timelines_text(record.couplings, parts),
        programs_text(parts),
        settings_text(record, parts),
        resources_text(model, parts),
    ]
    return "".join(sections)


def add_once(names: list[str], name: str) -> None:
    if name not in names:
        names.append(name)


def name_of(written: str) -> str:
    """A name that yMMSL takes."""
    name = re.sub(r"\W", "_", written, flags=re.ASCII)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"


def port_of(component: str, port: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", port, re.ASCII):
        raise CxaError(
            f"port '{port}' of {component} has a name that no port of titin has: use letters, digits and underscores, "
            "in the file and in the program"
        )
    return port


def choose(part: Part) -> None:
    """What does the work of a component."""
    part.implementation = part.name
    if part.name != part.said.name:
        part.notes.append(f"the instance {part.said.name!r}; a program that asks for its name gets the one here")
    if part.java == "DuplicationMapper" and "command" not in part.said.properties:
        part.implementation = "titin.duplicator"
    elif part.said.kind == "terminal" and part.java.endswith(SINKS):
        part.implementation = "titin.sink"
        part.notes.append(f"was {part.said.java_class}; formats of files: docs/components.md")
    elif part.said.kind == "terminal" and part.java.endswith(SOURCES):
        part.implementation = "titin.source"
        part.notes.append(
            f"was {part.said.java_class}; its file has to be one that titin.source reads: docs/components.md"
        )


def find_called(parts: dict[str, Part], record: Record) -> None:
    """Finds components that one other calls in each of its steps: their whole time is within its step."""
    for part in parts.values():
        ends = {(c.sender, c.receiver) for c in record.couplings if part.said.name in (c.sender, c.receiver)}
        others = {end for pair in ends for end in pair} - {part.said.name}
        if len(others) != 1 or len(ends) != 2:
            continue
        caller = parts[others.pop()]
        step, whole = number(caller, "dt", record), number(part, "T", record)
        if caller.is_called or step is None or whole is None or whole > step or number(part, "dt", record) == step:
            continue
        part.is_called = True
        part.notes.append(f"its time T is within a step dt of {caller.name}, so {caller.name} calls it in each step")


def number(part: Part, name: str, record: Record) -> float | None:
    """A time in seconds, of this instance alone."""
    usual = record.properties.get("default_dt") if name == "dt" else None
    value = part.said.properties.get(name, usual)
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([-+.\deE]+)\s*(s|ms|us|min|h|)\s*", value)
        units = {"s": 1.0, "": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}
        try:
            return float(match[1]) * units[match[2]] if match else None
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def component_text(part: Part) -> str:
    out, into = ("o_f", "f_init") if part.is_called else ("o_i", "s")
    ports = [f"{key}: {flow(names)}" for key, names in ((out, part.sends), (into, part.receives)) if names]
    notes = "".join(f"      # {note}\n" for note in part.notes)
    what = scalar(part.said.java_class or part.said.kind)
    return (
        f"{notes}      {scalar(part.name)}:\n        description: {what}\n        ports: {{{', '.join(ports)}}}\n"
        f"        implementation: {scalar(part.implementation)}\n"
    )


def conduits_text(couplings: list[Coupling], parts: dict[str, Part]) -> str:
    if not couplings:
        return ""
    lines, receivers = [], dict[str, list[str]]()
    notes = dict[str, list[str]]()
    for coupling in couplings:
        sender = f"{parts[coupling.sender].name}.{coupling.out}"
        filters, lost = converted(coupling.filters)
        notes.setdefault(sender, []).extend(lost)
        receivers.setdefault(sender, []).append(
            " ".join([*filters, f"{parts[coupling.receiver].name}.{coupling.into}"])
        )
    for sender, ends in receivers.items():
        lines += [f"      # WARNING: {note}\n" for note in notes[sender]]
        written = ends[0] if len(ends) == 1 else flow(ends)
        lines.append(f"      {sender}: {written}\n")
    return "    conduits:\n" + "".join(lines)


def timelines_text(couplings: list[Coupling], parts: dict[str, Part]) -> str:
    """The groups of components that step together."""
    group = {name: name for name, part in parts.items() if not part.is_called}
    for coupling in couplings:
        if coupling.sender in group and coupling.receiver in group:
            kept, gone = group[coupling.sender], group[coupling.receiver]
            group = {name: kept if head == gone else head for name, head in group.items()}
    lines = ""
    for head in dict.fromkeys(group.values()):
        members = [parts[name].name for name, its in group.items() if its == head]
        if len(members) > 1:
            lines += f"      {scalar(members[0])}: {flow(members[1:])}\n"
    return f"    matching_timelines:\n{lines}" if lines else ""


def programs_text(parts: dict[str, Part]) -> str:
    own = [part for part in parts.values() if not part.implementation.startswith("titin.")]
    return "programs:\n" + "".join(program_text(part) for part in own) if own else ""


def program_text(part: Part) -> str:
    properties = part.said.properties
    command = properties.get("command")
    if not isinstance(command, str) or part.said.kind == "matlab":
        return not_run(part)
    text = f"  {scalar(part.name)}:\n    executable: {scalar(command)}\n"
    args = properties.get("args")
    words = [str(word) for word in args] if isinstance(args, list) else words_of(args)
    if words:
        text += f"    args: {flow(words)}\n"
    if is_mpi(part):
        text += (
            "    execution_model: openmpi    # or mpich, intelmpi, srunmpi: the MPI that the program is built with\n"
        )
        if properties.get("mpiexec_args"):
            text += f"    # mpiexec had the arguments: {one_line(properties['mpiexec_args'])}\n"
    if part.java not in ("", "NativeKernel", "MPIKernel"):
        text += f"    # The Java class {part.said.java_class}, which named its ports, is not needed.\n"
    return text


def words_of(args: Value) -> list[str]:
    if args is None:
        return []
    try:
        return shlex.split(str(args))
    except ValueError:
        return [str(args)]


def is_mpi(part: Part) -> bool:
    return part.said.kind == "mpi" or part.java == "MPIKernel"


def not_run(part: Part) -> str:
    """A program that says that there is none."""
    kind = "a MATLAB script" if part.said.kind == "matlab" else f"the Java class {part.said.java_class}"
    said = shlex.quote(f"{part.name} was {kind}, which titin does not run: write a program in its place")
    return (
        f"  # WARNING: {kind} is not run by titin. Put a program in its place.\n  {scalar(part.name)}:\n    script: |\n"
        f"      #!/bin/sh\n      echo {said} >&2\n      exit 1\n"
    )


def settings_text(record: Record, parts: dict[str, Part]) -> str:
    lines = [setting_text("", name, value) for name, value in record.properties.items()]
    for part in parts.values():
        properties = part.said.properties
        if part.implementation in ("titin.sink", "titin.source"):
            lines.append(file_text(part))
            continue
        lines += [
            setting_text(f"{part.name}.", name, value) for name, value in properties.items() if name not in OF_STARTS
        ]
    return "settings:\n" + "".join(lines) if any(line[2] != "#" for line in lines) else "".join(lines)


def setting_text(owner: str, name: str, value: Value) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        return f"  # WARNING: {one_line(owner + name)}: {one_line(value)} has a name that no setting has\n"
    if isinstance(value, list) and not all(
        isinstance(item, int | float) and not isinstance(item, bool) for item in value
    ):
        return f"  # WARNING: {owner}{name}: {one_line(value)} is a list of other things than numbers\n"
    numbers = value if isinstance(value, list) else [value]
    if any(isinstance(number, int) and abs(number) > LARGEST for number in numbers):
        return f"  # WARNING: {owner}{name}: {one_line(value)} is larger than a setting can be\n"
    return f"  {scalar(owner + name)}: {scalar(value)}\n"


def file_text(part: Part) -> str:
    """The setting with the file of a source or a sink."""
    file = part.said.properties.get("file")
    if part.implementation == "titin.source":
        return f"  {part.name}.file: {scalar(file or part.name + '.csv')}    # .npy, .csv or .jsonl\n"
    ending = ".csv" if file else ".jsonl"
    return f"  {part.name}.file: {scalar(f'{file or part.name}{ending}')}    # was {part.java}\n"


def resources_text(model: str, parts: dict[str, Part]) -> str:
    lines = ""
    for part in parts.values():
        match = re.search(r"(?:^|\s)-{1,2}(?:np?|ntasks)[ =]?(\d+)", str(part.said.properties.get("mpiexec_args", "")))
        if is_mpi(part) and "command" in part.said.properties:
            lines += f"  {model}.{part.name}: {{mpi_processes: {match[1] if match else 1}}}\n"
    return f"resources:\n{lines}" if lines else ""


def one_line(value: Value) -> str:
    """A value as JSON, which is YAML too, and has no letter that ends a line or that YAML does not take."""
    written = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in written)


def flow(words: list[str]) -> str:
    """A list of texts as YAML on one line."""
    return f"[{', '.join(scalar(word) for word in words)}]"


def scalar(value: Value) -> str:
    """A value as YAML on one line."""
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in WORDS_OF_YAML and value[0] != ".":
        return value
    return one_line(value)
