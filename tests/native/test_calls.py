"""Header, library and bindings have the same functions, and some program in each language here calls each function.

The header for programs of MPWide is for C and C++ alone, and has functions of its own.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ..conftest import Manage
from . import test_exchange, test_hosted, test_light, test_members, test_paths, test_process, test_solo, test_versions
from .conftest import EXCHANGE, HERE, Build, config, run

#: Functions for tests alone, behind TITIN_TESTING, and for titin-host alone.
HIDDEN = {"titin_test_panic", "titin_host_file"}

#: Functions that titin.hpp does not call, with the functions that take their place.
LEFT_TO_C = {
    # Errors are exceptions: C++ needs no names of errors, no printing, and no recovery from errors that stick.
    "titin_error_name", "titin_explain", "titin_recover",
    # Ports are given as text.
    "titin_options_port",
    # The description names a filter in C++ by library and symbol, like a filter in C.
    "titin_options_filters",
    # A program with its own event loop calls C.
    "titin_open_begin", "titin_open_cancel", "titin_open_end",
    "titin_options_ready", "titin_ready_descriptor", "titin_ready_free", "titin_ready_new", "titin_ready_next",
    "titin_skip_deadlocks", "titin_path_request_ready",
    # A Loan is moved, and knows its memory.
    "titin_loan_find", "titin_loan_retain",
    # titin_send_array and titin_path_send_array do more.
    "titin_send", "titin_path_send",
    # titin_setting_value does more.
    "titin_setting_f64s", "titin_setting_i64s", "titin_setting_table",
    # The array of a message of any shape is read from the message's value.
    "titin_message_dtype", "titin_message_extent", "titin_message_index_name",
    "titin_message_order", "titin_message_rank", "titin_message_raw_data",
    # Errors say where a message came from.
    "titin_message_origin",
    # An array is received by its type.
    "titin_value_dtype", "titin_value_raw_data",
    # A program with tensors of DLPack has the types of its dlpack.h, which are C's.
    "titin_dlpack_device", "titin_dlpack_free",
    "titin_message_dlpack", "titin_receive_into_dlpack", "titin_send_dlpack",
    # A Field knows its types.
    "titin_field_dtype",
    # A View knows its elements and their layout, and its type gives the rest.
    "titin_dtype_find",
    "titin_message_elements", "titin_message_nbytes", "titin_message_stride",
    "titin_value_elements", "titin_value_nbytes", "titin_value_stride",
}  # fmt: skip


def text_of(path: str) -> str:
    """An installed file, without comments of C."""
    (prefix,) = config("--prefix")
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", (Path(prefix) / path).read_text(), flags=re.DOTALL)


def declared() -> set[str]:
    """The functions of titin.h and titin_path.h."""
    text = text_of("include/titin.h") + text_of("include/titin_path.h")
    return set(re.findall(r"\b(titin_\w+)\((?!\*)", text))


def declared_for_mpwide() -> set[str]:
    """The functions of MPWide.h that the library has."""
    return set(re.findall(r"\b(titin_\w+)\(", text_of("include/mpwide/MPWide.h")))


def named_by_cpp() -> set[str]:
    """The functions of the headers that those of C++ name."""
    (prefix,) = config("--prefix")
    files = [file.relative_to(prefix) for file in Path(prefix, "include").rglob("*.hpp")]
    return {name for file in files for name in re.findall(r"\btitin_\w+", text_of(str(file)))} & declared()


def test_the_header_and_the_library_have_the_same_functions() -> None:
    (prefix,) = config("--prefix")
    command = ["nm", "-D", "--defined-only", f"{prefix}/lib/libtitin.so"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True)
    exported = {line.split()[-1] for line in listing.stdout.splitlines()}
    assert exported == declared() | declared_for_mpwide()


def test_every_function_of_mpwide_is_called() -> None:
    header = text_of("include/mpwide/MPWide.h")
    # Once to declare it, and once in a call of MPWide.
    unused = {name for name in declared_for_mpwide() if len(re.findall(rf"\b{name}\(", header)) < 2}
    assert unused == set()
    offered = set(re.findall(r"\b(MPW_\w+)\(", header))
    assert len(offered) > 30
    called = "".join((HERE / name).read_text() for name in ("mpwide.cpp", "mpwide.c"))
    assert {name for name in offered if f"{name}(" not in called} == set()


def test_fortran_has_all_of_the_header() -> None:
    (prefix,) = config("--prefix")
    files = [file for glob in ("titin_c.f90", "titin_c_*.f90") for file in Path(prefix, "fortran").glob(glob)]
    fortran = "".join(text_of(f"fortran/{file.name}") for file in files)
    bound = re.findall(r"^ +(?:\S+ function|subroutine) (titin_\w+)", fortran, flags=re.MULTILINE)
    assert set(bound) == declared() - HIDDEN
    headers = text_of("include/titin.h") + text_of("include/titin_path.h")
    constants = dict(re.findall(r"(TITIN_\w+) = (\d+)", headers))
    assert constants == {
        name.upper(): value for name, value in re.findall(r"parameter :: (titin_\w+) = (\d+)", fortran)
    }


def test_cpp_has_all_of_the_header_but_what_it_does_otherwise() -> None:
    assert declared() - named_by_cpp() == LEFT_TO_C | HIDDEN


@pytest.fixture(scope="session")
def auditor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library by which the dynamic linker reports the functions that a program calls."""
    library = tmp_path_factory.mktemp("calls") / "calls.so"
    subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", HERE / "calls.c", "-o", library], check=True
    )
    return library


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_every_function_is_called(build: Build, auditor: Path, manage: Manage, tmp_path: Path, language: str) -> None:
    notes = tmp_path / "calls"
    env = f"LD_AUDIT: {auditor}, CALLS: {notes}"
    for name in ("exchange", "field", "versions", "solo", "process", "members"):
        (tmp_path / name).mkdir()
    exchange = build("exchange", language)
    run(tmp_path / "exchange", test_exchange.MODEL.format(left=exchange, right=exchange, env=env))
    field = build("field", language)
    run(tmp_path / "field", EXCHANGE.format(left=field, right=field, env=env))
    versions = build("versions", language)
    run(tmp_path / "versions", test_versions.MODEL.format(left=versions, right=versions, env=env))
    run(tmp_path / "members", test_members.model(build("members", language), env))
    run(tmp_path / "solo", test_solo.model(build("solo", language), env))
    test_process.interrupt(tmp_path / "process", build("interrupted", language), env)
    test_process.interrupt_opening(tmp_path, build("interrupted", language), LD_AUDIT=str(auditor), CALLS=str(notes))
    environment = {"LD_AUDIT": str(auditor), "CALLS": str(notes)}
    host, text = test_hosted.model(build, language)
    for how in ("", "say", "return"):
        manager = manage(text, f"hosted{how}")
        manager.run(host, *how.split(), **environment)
        assert manager.wait()[0] == (1 if how else 0)
    for program, text in (("light", test_light.ring()), ("polled", test_light.PAIR)):
        if (program, language) != ("polled", "cpp"):
            manager = manage(text, program)
            manager.run(build(program, language), **environment)
            assert manager.wait()[0] == 0
    paths = test_paths.command(build, language)
    test_paths.meet(test_paths.make_key(tmp_path), paths, paths, **environment)
    if language == "c":
        subprocess.run([build("alone", "c")], env=environment, check=True)
    called = set(notes.read_text().split())
    wanted = named_by_cpp() if language == "cpp" else declared() - HIDDEN
    assert wanted - called == set()
