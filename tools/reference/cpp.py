"""The names of C++, from the headers: classes, their public members, and functions of the namespace titin."""

import re

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from reference import ROOT, Entry, Page, Section, paragraphs
from reference.c import text_of

HEADERS = [
    "titin.hpp",
    "titin/instance.hpp",
    "titin/port.hpp",
    "titin/message.hpp",
    "titin/array.hpp",
    "titin/value.hpp",
    "titin/field.hpp",
    "titin/loan.hpp",
    "titin/options.hpp",
    "titin/error.hpp",
    "titin/submodel.hpp",
    "titin/host.hpp",
    "titin/filter.hpp",
    "titin/path.hpp",
    "titin_mpi.hpp",
    "titin_ga.hpp",
]
CLASSES = {"class_specifier", "struct_specifier"}
WRAPPERS = {"translation_unit", "preproc_ifdef", "preproc_if", "declaration_list"}
DECLARATIONS = {
    "function_definition", "declaration", "template_declaration", "enum_specifier", "alias_declaration",
    "field_declaration", "friend_declaration", "using_declaration", *CLASSES,
}  # fmt: skip

NAMES = {"identifier", "field_identifier", "destructor_name", "operator_name", "operator_cast"}
BODIES = {"compound_statement", "field_initializer_list", "try_statement", "constructor_try_statement"}


def within(node: Node, kinds: set[str]) -> Node | None:
    """The node, or what a template is of, if it is of one of these kinds."""
    if node.type in kinds:
        return node
    if node.type in ("template_declaration", "declaration"):
        return next((found for child in node.named_children if (found := within(child, kinds))), None)
    return None


def name_of(node: Node) -> str | None:
    """The name that a declaration brings."""
    if node.type == "template_declaration":
        inner = [child for child in node.named_children if child.type in DECLARATIONS]
        return name_of(inner[-1]) if inner else None
    if node.type in CLASSES | {"enum_specifier", "alias_declaration"}:
        name = node.child_by_field_name("name")
        return text_of(name) if name else None
    declarator = node.child_by_field_name("declarator")
    while declarator and declarator.type not in NAMES:
        named = [one for one in declarator.named_children if "declarator" in one.type or one.type == "operator_name"]
        declarator = declarator.child_by_field_name("declarator") or next(iter(named), None)
    return re.sub(r"\s+", "", text_of(declarator)) if declarator else None


def signature(node: Node) -> str:
    """A declaration without the body and without the initializers of a constructor."""
    function = within(node, {"function_definition"})
    bodies = [child.start_byte for child in function.children if child.type in BODIES] if function else []
    end = min(bodies, default=node.end_byte) - node.start_byte
    text = " ".join(text_of(node).encode()[:end].decode().split()).rstrip(":{ ").removesuffix(";") + ";"
    return re.sub(r"^(template <.*?>) (?=\S)", r"\1\n", text)


def is_internal(name: str | None, node: Node) -> bool:
    """Whether a member is no matter of users: moves, copies, destructors, handles of the C interface."""
    return (
        name is None
        or name.startswith(("~", "operator="))
        or name == "raw"
        or text_of(node).startswith((f"{name}({name} &&", "class titin_"))
        or text_of(node).rstrip(";").endswith("= delete")
        or node.type in ("friend_declaration", "using_declaration")
    )


class Reader:
    """Reads the entries of a scope: a namespace, or the public part of a class."""

    def __init__(self, scope: str, lines: list[str], public: bool = True) -> None:
        self.scope, self.lines, self.public = scope, lines, public
        self.entries: list[Entry] = []
        self.fields: list[str] = []
        self.field_names: list[str] = []
        self.last_row = self.above = -1
        self.comment: list[Node] = []

    def read(self, parent: Node) -> list[Entry]:
        for node in parent.children:
            if node.type == "comment":
                if node.start_point.row != self.last_row:
                    self.comment.append(node)
            elif node.type == "access_specifier":
                self.public = text_of(node) == "public"
            elif node.type == "namespace_definition":
                name = node.child_by_field_name("name")
                self.comment = []
                if name and text_of(name) != "detail":
                    inner = Reader(text_of(name) if not self.scope else f"{self.scope}::{text_of(name)}", self.lines)
                    body = node.child_by_field_name("body")
                    self.entries += inner.read(body) if body else []
            elif node.type in WRAPPERS:
                # A comment above #if describes what is in it.
                self.above = node.start_point.row
                self.read(node)
            elif node.type in DECLARATIONS:
                self.declaration(node)
        return self.entries

    def text(self, row: int) -> str:
        """The comment that ends right above a row."""
        lines: list[str] = []
        row = self.above if self.above + 1 == row else row
        for node in reversed(self.comment):
            if node.end_point.row + 1 != row:
                break
            # Other comments are for readers of the code.
            if text_of(node).startswith("///"):
                lines.insert(0, re.sub(r"^/// ?", "", text_of(node)).rstrip())
            row = node.start_point.row
        return paragraphs(lines)

    def declaration(self, node: Node) -> None:
        row, name = node.start_point.row, name_of(node)
        text, self.comment = self.text(row), []
        of_class = within(node, CLASSES)
        if self.public and name and not is_internal(name, node):
            if of_class:
                self.add_class(node, of_class, f"{self.scope}::{name}", text)
            elif node.type == "field_declaration" and "(" not in re.sub(r"<.*?>|=.*", "", text_of(node)):
                self.add_field(node, text)
            else:
                self.add(node, f"{self.scope}::{name}", text, beside=row == self.last_row + 1)
        self.last_row = node.end_point.row

    def add_class(self, node: Node, of_class: Node, name: str, text: str) -> None:
        body = of_class.child_by_field_name("body")
        if not body:
            return  # declared here, defined elsewhere
        head = " ".join(text_of(node).encode()[: body.start_byte - node.start_byte].decode().split())
        head = re.sub(r" : (public )?detail::.*", "", head)
        inside = Reader(name, self.lines, of_class.type == "struct_specifier")
        members = inside.read(body)
        lines = [head + " {", *inside.fields, "};"] if inside.fields else [head + ";"]
        self.entries.append(Entry([name, *inside.field_names], lines, text, f"`{name}`", members))

    def add_field(self, node: Node, text: str) -> None:
        """A member without a call, which is shown in its class with its comment."""
        plain = re.sub(r"<[^;]*>|=[^,;]*", "", text_of(node)).rstrip(";").split(",")
        self.field_names += [f"{self.scope}::{one.split()[-1].strip('*&')}" for one in plain]
        above = [f"// {line}" for line in text.split("\n") if line]
        self.fields += [f"    {line}" for line in [*above, self.lines[node.start_point.row].strip()]]

    def add(self, node: Node, name: str, text: str, beside: bool) -> None:
        last = self.entries[-1] if self.entries else None
        if last and not text and (beside or name in last.names):
            last.names += [name] if name not in last.names else []
            last.signatures.append(signature(node))
        elif last and text.startswith("The same") and last.names == [name]:
            last.signatures.append(signature(node))
            last.text += "\n\n" + text
        else:
            self.entries.append(Entry([name], [signature(node)], text))


def header(name: str) -> Section:
    path = f"bindings/cpp/include/{name}"
    source = (ROOT / path).read_text()
    top = re.match(r"(?:// ?.*\n)+", source)
    lines = [re.sub(r"^// ?", "", line) for line in top[0].splitlines()] if top else []
    tree = Parser(Language(tree_sitter_cpp.language())).parse(source.encode())
    return Section(f"`{name}`", paragraphs(lines), Reader("", source.splitlines()).read(tree.root_node), path)


def page() -> Page:
    return Page(
        "C++: every name",
        "cpp",
        "Made from the headers. [The C++ interface in short](../cpp.md) has an example, and says what goes with what.",
        [header(name) for name in HEADERS],
    )
