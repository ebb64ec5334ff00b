#!/usr/bin/env python3
"""Builds the wheel, which holds everything: package, command, header files, libraries, CMake package, Fortran module.

cargo builds the library and the command. This program puts them and the files for other languages beside the package's
sources. maturin builds the extension against the library and packs everything.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import sbom

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "bindings/python"
#: The distribution titin-muscle3, which is pure Python.
MUSCLE3 = ROOT / "compat/muscle3/python"
# Libraries that every base system has: the list of manylinux_2_28.
GLIBC = (2, 28)
# What goes beside the library; the command `titin` goes where commands are found.
LIBRARY = ("libtitin.so", "libtitin.a", "titin-host", "titin-relayd")
#: The processor of this machine.
HOST = f"{platform.machine()}-unknown-linux-gnu"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="dev", help="cargo's profile")
    parser.add_argument("--portable", action="store_true", help="for any Linux with glibc 2.28 or newer (uses Zig)")
    parser.add_argument("--target", default=HOST, help="the processor, with --portable: aarch64-unknown-linux-gnu")
    parser.add_argument("--install", action="store_true", help="into the environment that runs this")
    options = parser.parse_args()
    if options.target != HOST and not options.portable:
        parser.error("another processor needs --portable, since Zig is the linker for it")

    target = target_folder()
    folder = target / (options.target if options.portable else "") / directory(options.profile)
    prepare(options)
    build(options, folder)
    stage(options, folder)
    describe(options)
    wheel = pack(options, folder, ROOT / "dist" if options.portable else target / "wheels")
    if not options.portable:
        wheel = wheel.replace(wheel.with_name(local(wheel.name)))
    if options.portable:
        check_symbols(options, folder)
        options_of_pip = ("-q", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheel.parent))
        run(sys.executable, "-m", "pip", "wheel", *options_of_pip, str(MUSCLE3))
        check_wheels(wheel)
    if options.install:
        install(wheel)
        # Pure Python, so pip builds it; the environment has what that needs.
        install(MUSCLE3, "--no-build-isolation")
    print(f"{wheel} ({wheel.stat().st_size / 1e6:.1f} MB)")


def target_folder() -> Path:
    """cargo's folder for what it builds."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


def directory(profile: str) -> str:
    """cargo's name of a profile's directory."""
    return "debug" if profile == "dev" else profile


def prepare(options: argparse.Namespace) -> None:
    """Installs what another processor needs: the tools for its binaries, and Rust's library."""
    if options.target == HOST:
        return
    package = f"binutils-{triple(options).replace('_', '-')}"
    run("tools/packages.sh", f"{tool(options, 'strip')}:{package}", f"{tool(options, 'objdump')}:{package}")
    if not shutil.which("rustup"):
        sys.exit(f"Rust's library for {options.target} is missing, and there is no rustup, which brings it")
    run("rustup", "target", "add", options.target)


def triple(options: argparse.Namespace) -> str:
    """The target as compilers and Debian name it."""
    return str(options.target).replace("-unknown", "")


def tool(options: argparse.Namespace, name: str) -> str:
    """The tool of binutils for the target's binaries. Each of Debian's tools knows one processor."""
    return name if options.target == HOST else f"{triple(options)}-{name}"


def native_titin(options: argparse.Namespace, folder: Path) -> Path:
    """The command `titin` that runs here. The one for another processor does not; its manual pages are the same."""
    if options.target == HOST:
        return folder / "titin"
    built = [target_folder() / place / directory(options.profile) / "titin" for place in (HOST, "")]
    if not any(file.exists() for file in built):
        run("cargo", "build", "--locked", "--profile", options.profile, "-p", "titin-cli")
    return next(file for file in built if file.exists())


def build(options: argparse.Namespace, folder: Path) -> None:
    """Builds the library and the commands."""
    command = ["cargo", "build"]
    if options.portable:
        command = ["cargo", "zigbuild", "--target", f"{options.target}.{GLIBC[0]}.{GLIBC[1]}"]
    command += ["--locked", "--profile", options.profile]
    run(*command, "-p", "titin-capi", "-p", "titin-cli", "-p", "titin-relayd")
    # titin-host links the library.
    run(*command, "-p", "titin-host", TITIN_LIB_DIR=str(folder))


def stage(options: argparse.Namespace, folder: Path) -> None:
    """Puts the built files, and the files for other languages, where maturin finds them."""
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert version, "the workspace has a version"
    sources = (ROOT / "bindings/fortran/sources.txt").read_text().split()
    words = {
        "VERSION": version[1],
        "SERIES": ".".join(version[1].split(".")[:2]),
        "FORTRAN": " ".join(sources),
        "MODULES": " ".join(f"${{prefix}}/fortran/{name}" for name in sources),
        "SONAME": os.environ.get("TITIN_SONAME", "libtitin.so"),
    }
    names = ("include", "lib", "fortran", "muscle3", "muscle2")
    include, lib, modules, muscle3, muscle2 = (PACKAGE / "titin" / name for name in names)
    scripts, manuals = PACKAGE / "data/scripts", PACKAGE / "data/data/share/man/man1"
    for place in (include, lib, modules, muscle3, muscle2, scripts, manuals):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
    for source, place in (
        ("crates/capi/include", include),
        ("bindings/cpp/include", include),
        ("bindings/fortran", modules),
        ("compat/muscle3/cpp", muscle3),
        ("compat/muscle3/fortran", muscle3 / "fortran"),
        ("compat/muscle2/include", muscle2 / "include"),
        ("compat/muscle2/fortran", muscle2 / "fortran"),
        ("compat/muscle2/lib", muscle2 / "lib"),
    ):
        shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    for name in LIBRARY:
        shutil.copy2(folder / name, lib)
    shutil.copy2(folder / "titin", scripts)
    compile_muscle2(options, folder / "muscle2", muscle2 / "lib")
    run(str(native_titin(options, folder)), "man", str(manuals))
    for file, place in (
        ("titin.pc", lib / "pkgconfig"),
        ("titin-config.cmake", lib / "cmake/titin"),
        ("titin-config-version.cmake", lib / "cmake/titin"),
    ):
        text = re.sub(r"@([A-Z]+)@", lambda word: words[word[1]], (PACKAGE / "share" / file).read_text())
        place.mkdir(parents=True, exist_ok=True)
        (place / file).write_text(text)
    # The names of functions stay. The tables for debuggers would make the wheel ten times as big.
    for binary in (*(lib / name for name in LIBRARY), scripts / "titin"):
        run(tool(options, "strip"), "--strip-debug", str(binary))


def compile_muscle2(options: argparse.Namespace, objects: Path, lib: Path) -> None:
    """Compiles MUSCLE 2's interface for C and Fortran into libmuscle2.a."""
    compiler, archiver = ["cc"], ["ar"]
    if options.portable:
        zig = [sys.executable, "-m", "ziglang"]
        compiler, archiver = [*zig, "cc", "-target", f"{triple(options)}.{GLIBC[0]}.{GLIBC[1]}"], [*zig, "ar"]
    objects.mkdir(parents=True, exist_ok=True)
    compiled = []
    for source in sorted((ROOT / "compat/muscle2/src").glob("*.c")):
        compiled.append(str(objects / f"{source.stem}.o"))
        headers = ("-Icompat/muscle2/include", "-Icompat/muscle2/src", "-Icrates/capi/include")
        run(*compiler, "-std=c11", "-O2", "-fPIC", "-Wall", *headers, "-c", str(source), "-o", compiled[-1])
    (lib / "libmuscle2.a").unlink(missing_ok=True)
    run(*archiver, "rcs", str(lib / "libmuscle2.a"), *compiled)


def describe(options: argparse.Namespace) -> None:
    """Puts the licences and the list of crates beside the package's sources."""
    for package in (PACKAGE, MUSCLE3):
        shutil.copy2(ROOT / "LICENSE", package)
    sbom.write(PACKAGE, options.target)


def pack(options: argparse.Namespace, folder: Path, out: Path) -> Path:
    """Builds the extension and packs the wheel."""
    command = ["maturin", "build", "--quiet", "--manifest-path", str(PACKAGE / "Cargo.toml"), "--locked"]
    command += ["--profile", options.profile, "--out", str(out), "--auditwheel", "skip"]
    if options.portable:
        command += ["--zig", "--target", options.target, "--compatibility", f"manylinux_{GLIBC[0]}_{GLIBC[1]}"]
    else:
        command += ["--compatibility", "linux", "--interpreter", sys.executable]
    out.mkdir(parents=True, exist_ok=True)
    before = {file: file.stat().st_mtime_ns for file in out.glob("titin-*.whl")}
    run(*command, TITIN_LIB_DIR=str(folder))
    (wheel,) = (file for file in out.glob("titin-*.whl") if before.get(file) != file.stat().st_mtime_ns)
    return wheel


def local(name: str) -> str:
    """The name of a wheel for this machine only. The name tells so, since the wheel is linked with this machine's
    glibc.

    pip takes the added part for a build number.
    """
    package, version, tags = name.split("-", 2)
    return f"{package}-{version}-0_this_machine_only-{tags}"


def check_symbols(options: argparse.Namespace, folder: Path) -> None:
    """Fails if a binary needs a newer glibc than the wheel promises."""
    for name in ("libtitin.so", "titin", "titin-host", "titin-relayd", "lib_core.so"):
        command = [tool(options, "objdump"), "-T", str(folder / name)]
        listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", listing)}
        newest = max(versions)
        if newest > GLIBC:
            sys.exit(f"{name} needs glibc {'.'.join(map(str, newest))}, more than the wheel promises")
        print(f"{name} needs glibc {'.'.join(map(str, newest))}")


def check_wheels(wheel: Path) -> None:
    """Fails if an index of packages would not show the wheels' pages, or if auditwheel finds a newer platform in the
    wheel than its name promises."""
    run(sys.executable, "-m", "twine", "check", "--strict", *map(str, wheel.parent.glob("titin*.whl")))
    command = [sys.executable, "-m", "auditwheel", "show", "--json", str(wheel)]
    tag = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["overall_tag"]
    floor = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    if not floor or tuple(map(int, floor.groups())) > GLIBC:
        sys.exit(f"{wheel.name} holds what needs {tag}, more than the wheel promises")
    print(f"{wheel.name} is for {tag}, says auditwheel")


def install(package: Path, *options: str) -> None:
    """Installs a wheel, or a folder with a package, in the environment of this Python."""
    run(sys.executable, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", *options, str(package))


def run(*command: str, **environment: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")


if __name__ == "__main__":
    main()
