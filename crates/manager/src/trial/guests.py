"""Which functions are not there, of those that standard input has as module:function. Imports nothing of theirs."""

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
