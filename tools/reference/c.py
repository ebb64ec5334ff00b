"""The names of C, from the headers."""

import re

import tree_sitter_c
from tree_sitter import Language, Node, Parser

from reference import ROOT, Entry, Page, Section, paragraphs

HEADERS = ["titin.h", "titin_mpi.h", "titin_ga.h", "titin_path.h"]
DECLARATIONS = {"declaration", "type_definition", "enum_specifier", "preproc_def", "function_definition"}
#: What is inside of other nodes: the guards of a header, and extern "C".
WRAPPERS = {"translation_unit", "preproc_ifdef", "linkage_specification", "declaration_list"}


def text_of(node: Node) -> str:
    return (node.text or b"").decode()


def comment_lines(comment: str) -> list[str]:
    body = comment.removeprefix("/*").removesuffix("*/")
    return [re.sub(r"^ \* ?", "", line).rstrip() for line in body.strip().split("\n")]


def names_of(node: Node) -> list[str]:
    """The names that a declaration brings: of a function, a type, constants or a macro."""
    if node.type == "preproc_def":
        name = node.child_by_field_name("name")
        return [text_of(name)] if name and node.child_by_field_name("value") else []
    if node.type == "enum_specifier":
        body = node.child_by_field_name("body")
        return [text_of(one.children[0]) for one in (body.children if body else []) if one.type == "enumerator"]
    declarator = node.child_by_field_name("declarator")
    while declarator and declarator.type not in ("identifier", "type_identifier"):
        inner = declarator.child_by_field_name("declarator")
        declarator = inner or next((one for one in declarator.named_children if "declarator" in one.type), None)
    return [text_of(declarator)] if declarator else []


def signature(node: Node) -> str:
    if node.type == "function_definition":
        body = node.child_by_field_name("body")
        source = text_of(node)[: body.start_byte - node.start_byte if body else None]
        return source.strip() + ";"
    return text_of(node).strip() + (";" if node.type == "enum_specifier" else "")


def flat(node: Node) -> list[Node]:
    """Comments and declarations in the order of the file."""
    # What only tests compile is no part of the interface.
    if node.type == "preproc_ifdef" and b"TITIN_TESTING" in (node.text or b"").split(b"\n")[0]:
        return []
    found: list[Node] = []
    for child in node.children:
        if child.type in WRAPPERS:
            found += flat(child)
        elif child.type == "comment" or child.type in DECLARATIONS:
            found.append(child)
    return found


def header(name: str) -> list[Section]:
    path = f"crates/capi/include/{name}"
    source = (ROOT / path).read_bytes()
    lines = source.decode().split("\n")
    first, *nodes = flat(Parser(Language(tree_sitter_c.language())).parse(source).root_node)
    here = Section(f"`{name}`", paragraphs(comment_lines(text_of(first))), source=path)
    sections = [here]
    comment: Node | None = None
    last_row = -1
    for node in nodes:
        row = node.start_point.row
        if node.type == "comment":
            if row == last_row:
                continue  # what stands behind a declaration is a part of it
            title = re.match(r"/\* -+ (.*?) -+ \*/", text_of(node))
            if title:
                here = Section(title[1])
                sections.append(here)
            elif comment:
                here.text += "\n\n" + paragraphs(comment_lines(text_of(comment)))
            comment = None if title else node
            continue
        end = node.end_point.row - (node.end_point.column == 0)
        described = comment is not None and comment.end_point.row + 1 == row
        if comment and not described:
            here.text += "\n\n" + paragraphs(comment_lines(text_of(comment)))
        names = names_of(node)
        if names:
            line = lines[row].strip() if node.type == "preproc_def" else signature(node)
            text = paragraphs(comment_lines(text_of(comment))) if described and comment else ""
            beside = re.search(r"/\*.*\*/", line) if node.type == "preproc_def" else None
            text = text or (paragraphs(comment_lines(beside[0])) if beside else "")
            if text or row != last_row + 1 or not here.entries:
                title_of_enum = re.split(r"[.:,](?:\s|$)", text)[0] if node.type == "enum_specifier" else ""
                here.entries.append(Entry(names, [line], text, title_of_enum))
            else:
                here.entries[-1].names += names
                here.entries[-1].signatures.append(line)
        comment = None
        last_row = end
    return [section for section in sections if section.entries or section.text]


def page() -> Page:
    return Page(
        "C: every name",
        "c",
        "Made from the headers. [The C interface in short](../c.md) has an example, and says what goes with what.",
        [section for name in HEADERS for section in header(name)],
    )
