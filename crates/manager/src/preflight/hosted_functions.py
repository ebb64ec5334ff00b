"""Which functions are not there, of those that standard input has as module:function. Imports nothing of theirs."""

import ast
import difflib
import json
import re
import sys
from pathlib import Path


def find(module):
    """Where a module is; if there is none, the first part of its name that is not there."""
    found, places, parts = None, None, module.split(".")
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        if end > 1 and places is None:
            return None, name
        specs = (finder.find_spec(name, places) for finder in sys.meta_path if hasattr(finder, "find_spec"))
        found = next((spec for spec in specs if spec is not None), None)
        if found is None:
            return None, name
        places = found.submodule_search_locations
    return found, ""


def parsed(text):
    """What stands at the top of a file, if it can be read."""
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError):
        return []


def misfit(statements, name):
    """The line that makes a name what surely cannot be run, and why; None if nothing is sure."""
    fault = None
    for statement in statements:
        # The last one counts; where there are several ways to one, it is not known.
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == name:
            plain = not statement.decorator_list
            is_generator = plain and any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own(statement))
            fault = (
                (statement.lineno, "is a generator, so a call does not run it; take its yield out")
                if is_generator
                else None
            )
        elif any(
            isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
            for node in ast.walk(statement)
        ):
            value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
            literal = isinstance(value, ast.Constant | ast.List | ast.Dict | ast.Tuple | ast.Set)
            fault = (statement.lineno, "is no function") if literal else None
        elif any(getattr(node, "name", None) == name for node in ast.walk(statement)):
            fault = None
    return fault


def own(function):
    """The nodes of a function, without those of functions in it."""
    rest = list(function.body)
    while rest:
        node = rest.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            rest += ast.iter_child_nodes(node)


def wrong(written, folders):
    """Why a function is not there, if that is sure."""
    module, _, function = written.partition(":")
    found, missing = find(module)
    if found is None:
        return f"there is no module {missing} in {', '.join(folders)}, nor where {sys.executable} looks for modules"
    origin = found.origin or ""
    if not origin.endswith(".py"):
        return None
    text = Path(origin).read_text(errors="replace")
    tree = parsed(text)
    if "." not in function and (fault := misfit(tree, function)):
        return f"{origin}:{fault[0]}: {function} {fault[1]}"
    # Where its name does not even stand it can be by these alone.
    if function.split(".")[0] in re.findall(r"\w+", text) or re.search(r"import\s*\(?\s*\*|__getattr__", text):
        return None
    near = difflib.get_close_matches(function, re.findall(r"^(?:async +)?def +(\w+)", text, re.MULTILINE), 1)
    return f"{origin} has no function {function}" + "".join(f"; did you mean {name}?" for name in near)


asked = json.load(sys.stdin)
sys.path = asked["folders"] + [folder for folder in sys.path if folder]
if find("titin")[0] is None:
    answer = dict.fromkeys(asked["functions"], f"{sys.executable}, which would run it, has no titin")
else:
    answer = {written: wrong(written, asked["folders"]) for written in asked["functions"]}
json.dump({written: why for written, why in answer.items() if why}, sys.stdout)
