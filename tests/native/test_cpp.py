"""Programs that compile with the headers of C++, and programs that the compiler must refuse."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..conftest import config
from .conftest import Build

HEAD = """\
#include <titin.hpp>
#include <titin/path.hpp>
#include <list>
void program(titin::Instance &instance, titin::Field &field, const titin::Message &message, titin::Path &path,
             const std::vector<double> &constant, std::vector<double> &writable, std::vector<char> &chars) {
    (void)instance, (void)field, (void)message, (void)path, (void)constant, (void)writable, (void)chars;
    %s
}
"""

#: Types of elements that are accepted, on machines with signed and with unsigned char.
TAKEN = [
    'instance.receive_into("in", writable);',
    'instance.receive_into("in", titin::Span(writable, {2, 2}));',
    'instance.receive_into("in", titin::Span(writable, {2}, {3}));',
    'instance.receive_into("in", chars);',
    'double table[2][3]; instance.receive_into("in", table, std::chrono::seconds(1));',
    'instance.send("out", constant, 0.0);',
    "static_assert(titin::detail::dtype<char>() == TITIN_I8);",
    'std::vector<bool> bits; titin::Value::list({bits, titin::Value::array(bits)}); instance.send("out", bits, 0.0);',
    'titin::Options options; options.instance("a").unchecked("b");',
    "field.receive(writable); field.receive(writable.data(), chars);",
    "field.receive(std::chrono::seconds(1), &chars[0]);",
    "double table[2][3]; field.receive(table); field.receive(titin::Span(writable, {2, 2}));",
    "std::vector<std::vector<double>> several(2); field.receive(several); field.send(0.0, several);",
    "field.receive(std::vector<double *>{&writable[0]});",
    "field.receive_at(0.0, std::vector{titin::Span(writable, {2})});",
    "field.send(0.0, constant); field.send(0.0, std::vector<double>(4), constant.data());",
    'instance.receive_any({"in", "other"}); instance.receive_any(std::vector<titin::Port>());',
    "path.exchange(constant, chars); path.exchange(constant, titin::Span(chars, {2, 2}), std::chrono::seconds(1));",
    "path.exchange(constant.data(), {2, 2}, writable); path.exchange(constant.data(), {2}); path.exchange(chars);",
    "path.exchange(chars, std::chrono::seconds(1)); path.exchange(constant.data(), 8, std::chrono::seconds(1));",
    "path.exchange(constant.data(), sizeof(double), writable.data(), 8); path.exchange(nullptr, 0, &writable[0], 8);",
    "double table[2][3]; path.iexchange(table, writable).wait(); path.isend(table).wait();",
    "path.iexchange(constant).wait(); path.iexchange(constant.data(), {2}, chars).wait();",
]

#: Wrong programs, and the words of the compiler's error for each.
REFUSED = {
    'instance.receive_into("in", constant);': "are const",
    'instance.receive_into("in", message.array<double>());': "are const",
    'instance.receive_into("in", titin::Span(constant, {2}));': "are const",
    'std::list<double> list; instance.receive_into("in", list);': "what is received into is a std::vector",
    'std::vector<bool> bits; instance.receive_into("in", bits);': "std::vector<bool> keeps bits",
    'std::vector<std::vector<double>> several; instance.receive_into("in", several);': "what is received into is a std",
    'instance.receive_into("in", std::vector<double>(4));': "a temporary would be lost",
    "field.receive(constant);": "are const",
    "std::list<double> list; field.receive(list);": "std::list has its elements apart",
    "std::vector<bool> bits; field.receive(writable, bits);": "std::vector<bool> keeps bits",
    "field.receive(writable, std::vector<double>(4));": "a temporary would be lost",
    "field.receive(std::chrono::seconds(1), std::vector<double>(4));": "a temporary would be lost",
    "field.receive_at(0.0, std::vector<std::vector<double>>(2));": "a temporary would be lost",
    "field.receive_at(0.0, std::chrono::seconds(1), std::array<double, 4>());": "a temporary would be lost",
    "field.receive(1.5);": "what is received into is a std::vector",
    "std::list<double> list; field.send(0.0, list);": "arrays of a field are",
    "path.exchange(writable, constant);": "are const",
    "path.iexchange(writable, constant);": "are const",
    "path.exchange(writable, std::vector<double>(4));": "a temporary would be lost",
    "std::list<double> list; path.exchange(writable, list);": "what is received into is a std::vector",
    "path.iexchange(std::vector<double>(4), writable);": "a temporary is gone before it is sent",
    "path.iexchange(std::vector<double>(4));": "a temporary is gone before it is sent",
    "message.array<long double>();": "arrays hold",
    "message.value().array<std::string>();": "arrays hold",
    'instance.send("out", std::vector<std::string>(), 0.0);': "data are arrays",
    'instance.send("out", (__int128)1, 0.0);': "data are arrays",
    'instance.send("out", std::vector<__int128>(), 0.0);': "data are arrays",
}


def compiled(body: str, folder: Path, *flags: str) -> str:
    """The compiler's errors for this program, with GNU extensions, which have integers of 128 bits."""
    (folder / "program.cpp").write_text(HEAD % body)
    command = ["c++", "-std=gnu++17", "-Wall", "-fsyntax-only", *flags, *config("--cflags"), "program.cpp"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stderr


def test_what_is_taken(tmp_path: Path) -> None:
    body = "\n".join(f"{{ {line} }}" for line in TAKEN)
    for char in ("-fsigned-char", "-funsigned-char"):
        assert compiled(body, tmp_path, char) == ""


def test_a_callback_outlives_a_borrowed_instance(build: Build) -> None:
    done = subprocess.run([build("borrowed", "cpp")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("body", REFUSED)
def test_what_is_refused(tmp_path: Path, body: str) -> None:
    errors = compiled(body, tmp_path)
    assert "error: static assertion failed" in errors, errors
    assert REFUSED[body] in errors
