"""C, C++ and Fortran exchange every kind of data; any two of them fit. The C header and the library agree."""

import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TITIN = Path(sys.executable).parent / "titin"

COMPILERS = {
    "c": ["cc", "-std=c11", "-Wpedantic"],
    "cpp": ["c++", "-std=c++17", "-Wpedantic", "-Wshadow"],
    "cpp20": ["c++", "-std=c++20"],
    "f90": ["gfortran", "-std=f2018", "-Wno-compare-reals"],
}

MODEL = """\
ymmsl_version: v0.2
models:
  exchange:
    components:
      left: {{ports: {{o_i: out, s: in}}, implementation: left}}
      right: {{ports: {{o_i: out, s: in}}, implementation: right}}
    conduits:
      left.out: right.in
      right.out: left.in
settings:
  k: 0.5
  n: 3
  flag: true
  text: some text
  dt: 10 ms
  floats: [1.5, 2.5]
  ints: [1, 2, 3]
  table: [[1.0, 2.0], [3.0, 4.0]]
programs:
  left: {{executable: {left}, args: [left]}}
  right: {{executable: {right}, args: [right]}}
"""


def config(*wanted):
    done = subprocess.run([TITIN, "config", *wanted], capture_output=True, text=True, check=True)
    return shlex.split(done.stdout)


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exchange")
    for name, compiler in COMPILERS.items():
        modules = config("--fortran") if name == "f90" else []
        source = HERE / f"exchange.{name.removesuffix('20')}"
        command = [
            compiler[0],
            "-Wall",
            "-Wextra",
            "-Werror",
            "-g",
            *compiler[1:],
            *config("--cflags"),
            *modules,
            source,
        ]
        subprocess.run([*command, "-o", folder / name, *config("--libs")], check=True, cwd=folder)
    return folder


@pytest.mark.parametrize(("left", "right"), list(itertools.product(COMPILERS, COMPILERS)))
def test_any_two_languages_understand_each_other(programs, tmp_path, left, right):
    (tmp_path / "model.ymmsl").write_text(MODEL.format(left=programs / left, right=programs / right))
    done = subprocess.run(
        [TITIN, "run", "model.ymmsl", "--run-dir", "run"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = "".join(file.read_text() for file in tmp_path.glob("run/instances/*/stderr.txt"))
    assert done.returncode == 0, done.stdout + said


def test_the_header_and_the_library_have_the_same_functions():
    (prefix,) = map(Path, config("--prefix"))
    text = re.sub(r"/\*.*?\*/", "", (prefix / "include/titin.h").read_text(), flags=re.DOTALL)
    declared = set(re.findall(r"\b(titin_\w+)\((?!\*)", text))
    listing = subprocess.run(["nm", "-D", "--defined-only", prefix / "lib/libtitin.so"], capture_output=True, text=True)
    exported = {line.split()[-1] for line in listing.stdout.splitlines()}
    assert exported == declared
    fortran = (prefix / "fortran/titin_c.f90").read_text()
    bound = set(re.findall(r"^ +(?:function|subroutine) (titin_\w+)", fortran, flags=re.MULTILINE))
    assert bound == declared - {"titin_test_panic"}
    constants = dict(re.findall(r"(TITIN_\w+) = (\d+)", text))
    assert constants == {
        name.upper(): value for name, value in re.findall(r"parameter :: (titin_\w+) = (\d+)", fortran)
    }


ALONE = r"""
#define TITIN_TESTING
#include <string.h>
#include <titin.h>
#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%d: %s: %s\n", __LINE__, #what, titin_error()); \
            return 1; \
        } \
    } while (0)
int main(void) {
    titin_instance *instance;
    CHECK(titin_error_kind() == TITIN_OK && !strcmp(titin_error(), ""));
    CHECK(titin_port_find(NULL, "x") == NULL && titin_error_kind() == TITIN_ERROR_USAGE);
    CHECK(titin_open("f_int: a", NULL, &instance) == TITIN_ERROR_USAGE && instance == NULL);
    CHECK(titin_open(NULL, NULL, &instance) == TITIN_ERROR_CONNECTION && strstr(titin_error(), "TITIN_INSTANCE"));
    /* The error that led to the NULL is what later calls say. */
    CHECK(titin_close(instance) == TITIN_ERROR_CONNECTION);
    CHECK(titin_test_panic(NULL) == TITIN_ERROR_INTERNAL && strstr(titin_error(), "panics"));
    CHECK(titin_explain(NULL) == TITIN_ERROR_INTERNAL);
    titin_value *deep = titin_new_list();
    for (int i = 0; i < 90; ++i) {
        titin_value *outer = titin_new_list();
        CHECK(titin_list_append(outer, deep) == 0);
        deep = outer;
    }
    titin_message *message = titin_message_new(deep, 1.0, TITIN_NO_NEXT);
    CHECK(message && titin_message_kind(message) == TITIN_KIND_LIST && !titin_message_settings(message));
    titin_message_free(message);
    for (int i = 0; i < 20 && deep; ++i) {
        titin_value *outer = titin_new_list();
        if (titin_list_append(outer, deep)) CHECK(strstr(titin_error(), "deep"));
        deep = outer;
    }
    titin_value_free(deep);
    int64_t extents[2] = {2, -1}, number;
    CHECK(!titin_new_array(TITIN_F64, 2, extents, NULL, 0, NULL, extents, 0) && strstr(titin_error(), "-1"));
    CHECK(!titin_new_array(99, 0, NULL, NULL, 0, NULL, extents, 0) && strstr(titin_error(), "99"));
    CHECK(!titin_new_text("\xff", 1) && strstr(titin_error(), "UTF-8"));
    titin_value *text = titin_new_text("a\0b", 3);
    CHECK(titin_value_i64(text, &number) == TITIN_ERROR_TYPE_MISMATCH);
    CHECK(titin_value_text(text, &number) && number == 3);
    titin_value_free(text);
    CHECK(titin_dtype_find("float64") == TITIN_F64 && titin_dtype_size(TITIN_C128) == 16 && !titin_dtype_name(0));
    titin_options *options = titin_options_new();
    CHECK(titin_options_port(options, "1a", TITIN_S) == TITIN_ERROR_USAGE);
    CHECK(titin_options_port(options, "a", 9) == TITIN_ERROR_USAGE && titin_options_exceptions(options) == 0);
    titin_options_free(options);
    return 0;
}
"""


def test_errors_without_a_run(tmp_path):
    (tmp_path / "alone.c").write_text(ALONE)
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", *config("--cflags")]
    subprocess.run(["cc", *flags, "alone.c", "-o", "alone", *config("--libs")], check=True, cwd=tmp_path)
    done = subprocess.run([tmp_path / "alone"], env={}, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
