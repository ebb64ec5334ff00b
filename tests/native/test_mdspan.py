"""std::mdspan and std::span of C++23, with whichever compiler here has them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import config
from . import test_exchange
from .conftest import HERE, run

#: The last compiler, Zig, is installed with the tools that build the wheel. Zig is a clang with its own standard
#: library, which it compiles when it links for the first time: for one to two minutes.
CANDIDATES = [
    ["c++", "-std=c++23"],
    ["clang++", "-std=c++23", "-stdlib=libc++"],
    ["clang++-19", "-std=c++23", "-stdlib=libc++"],
    [sys.executable, "-m", "ziglang", "c++", "-std=c++23"],
]

PROBE = """\
#include <mdspan>
#if !defined(__cpp_lib_mdspan) || !defined(__cpp_multidimensional_subscript)
#error not yet
#endif
"""


def has_mdspan(compiler: list[str], folder: Path) -> bool:
    """Whether this compiler is there and knows std::mdspan and subscripts of several indices."""
    probe = folder / "probe.cpp"
    probe.write_text(PROBE)
    command = [*compiler, "-c", probe, "-o", folder / "probe.o"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def test_mdspan_goes_in_and_out(tmp_path: Path) -> None:
    compiler = next((candidate for candidate in CANDIDATES if has_mdspan(candidate, tmp_path)), None)
    if compiler is None:
        pytest.skip("no compiler here has <mdspan>")
    warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
    program = tmp_path / "mdspan"
    command = [*compiler, *warnings, "-g", *config("--cflags"), HERE / "mdspan.cpp", "-o", program, *config("--libs")]
    subprocess.run(command, check=True, cwd=tmp_path)
    run(tmp_path, test_exchange.MODEL.format(left=program, right=program, env=""))
