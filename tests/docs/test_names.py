"""Every public name of every language has an entry with a text in the pages of names."""

import importlib
import inspect
import re
import sys

import pytest

from ..conftest import ROOT, needs_packages

needs_packages("griffe", "tree_sitter")
sys.path.insert(0, str(ROOT / "tools"))
from reference import c, cpp, fortran, python  # noqa: E402

PAGES = {"c": c.page, "cpp": cpp.page, "fortran": fortran.page, "python": python.page}
HEADERS = ROOT / "bindings/cpp/include"
MODULES = ROOT / "bindings/fortran"
LINES = re.DOTALL | re.MULTILINE


@pytest.mark.parametrize("language", PAGES)
def test_every_entry_has_a_text(language):
    page = PAGES[language]()
    assert len(page.names()) > 100 and page.undescribed() == []


@pytest.mark.parametrize("language", PAGES)
def test_each_place_of_a_page_is_one(language):
    ids = [
        first or other for first, other in re.findall(r'\{ #(\S+) \}|<a id="([^"]+)">', PAGES[language]().markdown())
    ]
    assert len(ids) > 100 and sorted(ids) == sorted(set(ids))


def test_the_names_of_c():
    """The functions that the library exports, the constants and the types: by their spelling in the headers."""
    wanted = set()
    for header in (ROOT / "crates/capi/include").glob("*.h"):
        text = re.sub(
            r"/\*.*?\*/|#ifdef TITIN_TESTING.*?#endif|#(?:ifndef|define) \w+_H$", "", header.read_text(), flags=LINES
        )
        text = re.sub(r"^static inline (.*?)\{.*?^\}", r"\1;", text, flags=LINES)
        wanted |= {*re.findall(r"\b(titin_\w+)\(", text), *re.findall(r"\bTITIN_\w+\b", text)}
        wanted |= {*re.findall(r"^(?:typedef struct \w+|\}) (\w+);", text, re.MULTILINE)}
    assert len(wanted) > 350 and wanted - c.page().names() == set()


def test_the_names_of_cpp():
    """The types of the namespace titin, and the public functions of its classes, by their spelling."""
    found = cpp.page().names()
    members = {name.rsplit("::", 1)[1] for name in found}
    types = 0
    for header in HEADERS.glob("**/*.hpp"):
        text = re.sub(r"^namespace detail \{.*?^\} // namespace detail", "", header.read_text(), flags=LINES)
        text = re.sub(r"//.*", "", text)
        for name in re.findall(
            r"^(?:class|struct|enum class|enum|using) (?:\S+\]\] )?(\w+)(?!\w|;)", text, re.MULTILINE
        ):
            types += 1
            assert {f"titin::{name}", f"titin::ga::{name}"} & found, f"{header.name}: {name}"
        public = re.sub(r"^(?:private|protected):.*?^\};", "};", text, flags=LINES)
        # A result, the name, arguments and a body; `operator` has a name of its own.
        call = r"^    (?!return |throw )\w[\w:<>*& ]*[ *&](?<!operator )(\w+)\([^;{]*\)[^;{(]* \{"
        for name in set(re.findall(call, public, re.MULTILINE)) - {"raw", "operator"}:
            assert name in members, f"{header.name}: {name}"
    assert types > 45


def test_the_names_of_fortran():
    """What the modules make public, and the bindings of the types that these name."""
    found = fortran.page().names()
    bindings = {name.partition("%")[2] for name in found if "%" in name}
    for module in fortran.MODULES:
        text = re.sub(r"&\n\s*", "", (MODULES / f"{module}.f90").read_text())
        public = {name for line in re.findall(r"^   public :: (.*)", text, re.MULTILINE) for name in line.split(", ")}
        assert public and public - found == set(), module
    for source in set(MODULES.glob("titin_*.f90")) - set(MODULES.glob("titin_c_*.f90")):
        text = re.sub(r"&\n\s*", "", source.read_text())
        for line in re.findall(r"^      (?:procedure|generic) :: (?!assignment)(.*)", text, re.MULTILINE):
            names = [line.split(" =>")[0]] if "=>" in line else line.split(", ")
            assert set(names) <= bindings | {"ranks_of"}, source.name


@pytest.mark.parametrize("module", python.MODULES)
def test_the_names_of_python(module):
    """What the imported modules list, and the public attributes of their classes."""
    there = importlib.import_module(module)
    listed = getattr(there, "__all__", ["Instance"])
    wanted = {name for name in listed if not name.startswith("__")}
    for name in set(wanted):
        one = getattr(there, name)
        members = vars(one) if inspect.isclass(one) else {}
        called = [key for key, value in members.items() if callable(value) or inspect.isdatadescriptor(value)]
        wanted |= {f"{name}.{key}" for key in called if not key.startswith("_")}
    assert {f"{module}.{name}" for name in wanted} - python.page().names() == set()


def test_the_page_has_the_words_of_the_docstrings():
    (entry,) = [one for one in python.page().entries() if one.names[0] == "titin.Instance.reuse"]
    assert "Begins the next use" in entry.text
    assert "`titin.CallOrderError`" in entry.text
