"""The names of Python, from the sources and stubs, which are read and not imported."""

import inspect
import re

import griffe

from reference import ROOT, Entry, Page, Section

MODULES = ["titin", "titin.model", "titin.aio", "titin.path"]


def markdown(text: str) -> str:
    """A docstring, whose roles are those of reStructuredText, as Markdown."""
    text = inspect.cleandoc(text)
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    text = text.replace("``", "`")
    text = re.sub(r"::$", ":", text, flags=re.MULTILINE)
    return re.sub(
        r"((?:^(?:>>>|\.\.\.).*\n?)+)", lambda m: f"\n```python\n{m[1].rstrip()}\n```\n", text, flags=re.MULTILINE
    )


def parameters(function: griffe.Function) -> str:
    parts, star = [], False
    for one in function.parameters:
        if one.name in ("self", "cls"):
            continue
        if one.kind is griffe.ParameterKind.keyword_only and not star:
            parts.append("*")
            star = True
        stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(one.kind, "")
        star |= stars == "*"
        part = stars + one.name + (f": {one.annotation}" if one.annotation else "")
        parts.append(part + (f" = {one.default}" if one.default is not None and not stars else ""))
    plain = ", ".join(parts)
    return plain if len(plain) < 80 else "\n    " + ",\n    ".join(parts) + ",\n"


def signatures(name: str, function: griffe.Function, several: list[griffe.Function] | None = None) -> list[str]:
    keyword = "async def" if "async" in function.labels else "def"
    given = several or function.overloads or [function]
    return [f"{keyword} {name}({parameters(one)})" + (f" -> {one.returns}" if one.returns else "") for one in given]


def entry(name: str, one: griffe.Object | griffe.Alias, short: str) -> Entry:
    text = markdown(one.docstring.value) if one.docstring else ""
    if isinstance(one, griffe.Function):
        return Entry([name], signatures(short, one), text)
    if isinstance(one, griffe.Class):
        opened = one.members.get("__new__") or one.members.get("__init__")
        bases = ", ".join(str(base) for base in one.bases)
        lines = [f"class {short}({bases})" if bases else f"class {short}"]
        if isinstance(opened, griffe.Function):
            lines.append(f"{short}({parameters(opened)})")
        # A stub has overloads and no function that implements them.
        overloaded = [
            Entry([f"{name}.{key}"], signatures(key, several[-1], several), markdown(several[-1].docstring.value))
            for key, several in one.overloads.items()
            if key not in one.members and several[-1].docstring
        ]
        members = overloaded + [
            entry(f"{name}.{key}", member, key)
            for key, member in one.members.items()
            if not key.startswith("_") and not member.is_alias
        ]
        described = [member for member in members if member.text]
        plain = [member for member in members if not member.text]
        return Entry(
            [name, *(member.names[0] for member in plain)],
            [lines[0], *(f"    {line}" for member in plain for line in member.signatures), *lines[1:]],
            text,
            f"`{name}`",
            described,
        )
    annotation = f": {one.annotation}" if isinstance(one, griffe.Attribute) and one.annotation else ""
    return Entry([name], [f"{short}{annotation}"], text)


def section(package: griffe.Object | griffe.Alias, name: str) -> Section:
    module = package[name.removeprefix("titin.")] if name != "titin" else package
    found = Section(f"`{name}`", markdown(module.docstring.value) if module.docstring else "")
    exports = [str(one) for one in module.exports or []]
    public = exports or [key for key, one in module.members.items() if not key.startswith("_") and not one.is_alias]
    for key in public:
        one = module.members[key]
        if key.startswith("__"):
            continue
        if isinstance(one, griffe.Alias):
            one = one.final_target
        found.entries.append(entry(f"{name}.{key}", one, key))
    return found


def page() -> Page:
    package = griffe.load(
        "titin", search_paths=[ROOT / "bindings/python"], allow_inspection=False, resolve_aliases=True
    )
    return Page(
        "Python: every name",
        "python",
        "Made from the package. [The Python interface in short](../python.md) has an example, and says what goes with "
        "what.",
        [section(package, name) for name in MODULES],
    )
