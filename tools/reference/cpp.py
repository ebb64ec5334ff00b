"""The names of C++, from the headers: classes, their public members, and functions of the namespace titin."""

import re

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from reference import ROOT, Entry, Page, Section, paragraphs
from reference.c import text_of

HEADERS = ["titin.hpp", *(f"titin/{name}.hpp" for name in (
    "instance port message array value field loan options error submodel host filter path"
).split()), "titin_mpi.hpp", "titin_ga.hpp"]  # fmt: skip
CLASSES = {"class_specifier", "struct_specifier"}
WRAPPERS = {"translation_unit", "preproc_ifdef", "preproc_if", "preproc_else", "declaration_list"}
DECLARATIONS = {
    "function_definition", "declaration", "template_declaration", "enum_specifier", "alias_declaration",
    "field_declaration", "friend_declaration", "using_declaration", *CLASSES,
}  # fmt: skip


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
    while declarator and declarator.type not in (
        "identifier", "field_identifier", "destructor_name", "operator_name", "operator_cast",
    ):  # fmt: skip
        inner = declarator.child_by_field_name("declarator")
        named = [one for one in declarator.named_children if "declarator" in one.type or one.type == "operator_name"]
        declarator = inner or next(iter(named), None)
    return re.sub(r"\s+", "", text_of(declarator)) if declarator else None


def signature(node: Node) -> str:
    """A declaration without the body and without the initializers of a constructor."""
    function = within(node, {"function_definition"})
    source, end = text_of(node), node.end_byte
    if function:
        for child in function.children:
            if child.type in ("compound_statement", "field_initializer_list", "try_statement", "constructor_try_statement"):
                end = min(end, child.start_byte)
    cut = source.encode()[: end - node.start_byte].decode().rstrip().rstrip(":{").rstrip()
    lines = [line.strip() for line in cut.split("\n")]
    text = re.sub(r"(template <.*?>) (?=\S)", r"\1\n", " ".join(lines), count=1) if "template" in cut[:8] else " ".join(lines)
    return text.removesuffix(";") + ";"


def is_ours(name: str | None, node: Node) -> bool:
    """Whether a member is no matter of users: moves, copies, destructors, handles of the C interface."""
    return (
        name is None
        or name.startswith(("~", "operator="))
        or name == "raw"
        or text_of(node).rstrip(";").endswith(("= delete", "= default"))
        or node.type in ("friend_declaration", "using_declaration")
    )


class Reader:
    """Reads the entries of a scope: a namespace, or the public part of a class."""

    def __init__(self, scope: str, public: bool = True) -> None:
        self.scope, self.public = scope, public
        self.entries: list[Entry] = []
        self.last_row = -1
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
                    inner = Reader(text_of(name) if not self.scope else f"{self.scope}::{text_of(name)}")
                    body = node.child_by_field_name("body")
                    self.entries += inner.read(body) if body else []
            elif node.type in WRAPPERS:
                self.read(node)
            elif node.type in DECLARATIONS:
                self.declaration(node)
        return self.entries

    def text(self, row: int) -> str:
        """The comment that ends right above a row."""
        lines: list[str] = []
        for node in reversed(self.comment):
            if node.end_point.row + 1 != row or not text_of(node).startswith("///"):
                break
            lines.insert(0, re.sub(r"^/// ?", "", text_of(node)).rstrip())
            row = node.start_point.row
        return paragraphs(lines)

    def declaration(self, node: Node) -> None:
        row, name = node.start_point.row, name_of(node)
        text, self.comment = self.text(row), []
        if self.public and not is_ours(name, node) and not text_of(node).startswith("class titin_"):
            self.add(node, f"{self.scope}::{name}", text, beside=row == self.last_row + 1)
        self.last_row = node.end_point.row

    def add(self, node: Node, name: str, text: str, beside: bool) -> None:
        of_class = within(node, CLASSES)
        body = of_class.child_by_field_name("body") if of_class else None
        if of_class and not body:
            return  # declared here, defined elsewhere
        if of_class and body:
            source = text_of(node).encode()[: body.start_byte - node.start_byte].decode()
            source = re.sub(r" : (public )?detail::.*", "", " ".join(source.split()))
            members = Reader(name, of_class.type == "struct_specifier").read(body)
            self.entries.append(Entry([name], [source + ";"], text, members=members))
        elif not text and self.entries and (beside or name in self.entries[-1].names):
            if name not in self.entries[-1].names:
                self.entries[-1].names.append(name)
            self.entries[-1].signatures.append(signature(node))
        elif text.startswith("The same") and self.entries and self.entries[-1].names == [name]:
            self.entries[-1].signatures.append(signature(node))
            self.entries[-1].text += "\n\n" + text
        else:
            self.entries.append(Entry([name], [signature(node)], text))


def header(name: str) -> Section:
    source = (ROOT / "bindings/cpp/include" / name).read_text()
    top = re.match(r"(?:// ?.*\n)+", source)
    lines = [re.sub(r"^// ?", "", line) for line in top[0].splitlines()] if top else []
    tree = Parser(Language(tree_sitter_cpp.language())).parse(source.encode())
    return Section(f"`{name}`", paragraphs(lines), Reader("").read(tree.root_node))


def page() -> Page:
    return Page(
        "C++: every name",
        "cpp",
        "Made from the headers. [The C++ interface in short](../cpp.md) has an example, and says what goes with what.",
        [header(name) for name in HEADERS],
    )
