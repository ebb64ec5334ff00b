"""Compression between sites: messages that compress go compressed over a slow line, and no bit changes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..conftest import TITIN, config
from .conftest import Sites

STEPS = 20
HERE = Path(__file__).resolve().parent

#: A program that sends data of many types, smooth by one port and noise by the other, and its receiver, which prints a
#: digest of what has come. Without an argument, it prints the digest of what is sent.
PROGRAM = """\
import hashlib, sys

import numpy as np

TYPES = ["float64", "float32", "int32", "structure", "int64", "uint16", "bool", "complex128", "float16", "uint8"]


def data(step, is_smooth):
    rng, size, dtype = np.random.default_rng(step), 100_000 + 3_000 * step, TYPES[step % len(TYPES)]
    steps = np.arange(size) // 700 % 50
    if dtype == "structure":
        numbers = steps if is_smooth else rng.integers(0, 2**62, size)
        text = "text" * 20_000 if is_smooth else rng.bytes(50_000).hex()[:10]
        return {"array": numbers, "list": [step, None, 1.5, {"text": text}], "bytes": numbers.tobytes()}
    if is_smooth:
        return steps.astype(dtype).reshape(2, -1)
    dtype = dtype.replace("bool", "int8")
    return np.frombuffer(rng.bytes(size * np.dtype(dtype).itemsize), dtype)


def note(digest, value):
    if isinstance(value, dict):
        for name in sorted(value):
            digest.update(name.encode())
            note(digest, value[name])
    elif isinstance(value, list):
        for item in value:
            note(digest, item)
    elif hasattr(value, "shape"):
        array = np.asarray(value)
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    elif isinstance(value, (bytes, bytearray, memoryview)):
        digest.update(bytes(value))
    else:
        digest.update(repr(value).encode())


role, steps, digest = sys.argv[1], int(sys.argv[2]), hashlib.sha256()
if role == "expected":
    for step in range(steps):
        note(digest, data(step, True))
        note(digest, data(step, False))
    print(digest.hexdigest())
    sys.exit()

import titin

if role == "sender":
    with titin.Instance(o_i=["smooth", "noise"], s=["back"]) as instance:
        instance.reuse()
        for step in range(steps):
            instance.send("smooth", data(step, True), timestamp=float(step))
            instance.send("noise", data(step, False), timestamp=float(step))
            instance.receive("back")
else:
    with titin.Instance(s=["smooth", "noise"], o_i=["back"]) as instance:
        instance.reuse()
        for step in range(steps):
            note(digest, instance.receive("smooth").data)
            note(digest, instance.receive("noise").data)
            instance.send("back", None, timestamp=float(step))
    print(digest.hexdigest())
"""


def model(folder: Path, programs: dict[str, list[str]], *section: str) -> None:
    """Writes a model with a sender and a receiver for each program, and the lines of the section ``titin``."""
    lines = ["ymmsl_version: v0.2", "models:", "  pairs:", "    components:"]
    for name in programs:
        lines.append(f"      {name}_s: {{ports: {{o_i: [smooth, noise], s: back}}, implementation: {name}_s}}")
        lines.append(f"      {name}_r: {{ports: {{s: [smooth, noise], o_i: back}}, implementation: {name}_r}}")
    lines.append("    conduits:")
    for name in programs:
        lines += [f"      {name}_s.{port}: {name}_r.{port}" for port in ("smooth", "noise")]
        lines.append(f"      {name}_r.back: {name}_s.back")
    lines.append("programs:")
    for name, (executable, *arguments) in programs.items():
        for short, role in (("s", "sender"), ("r", "receiver")):
            words = json.dumps([*arguments, role, str(STEPS)])
            lines.append(f"  {name}_{short}: {{executable: {executable}, args: {words}}}")
    lines += ["titin:", *(f"  {line}" for line in section)]
    (folder / "model.ymmsl").write_text("\n".join(lines) + "\n")


def program(folder: Path) -> tuple[list[str], str]:
    """Writes the program in Python: its command, and what a receiver prints."""
    (folder / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(folder / "program.py")]
    done = subprocess.run([*command, "expected", str(STEPS)], capture_output=True, text=True, check=True)
    return command, done.stdout.strip()


def conduits(folder: Path) -> dict[str, dict[str, Any]]:
    """What the profile says of the conduits, by their senders."""
    command = [TITIN, "profile", "run", "--json"]
    told = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True).stdout
    return {conduit["from"]: conduit for conduit in json.loads(told)["conduits"]}


def printed(folder: Path, instance: str) -> str:
    """What an instance has printed."""
    return (folder / f"run/instances/{instance}/stdout.txt").read_text().strip()


def test_what_compresses_goes_compressed_over_a_slow_line(sites: Sites) -> None:
    python, expected = program(sites.folder)
    native = str(sites.folder / "compression")
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", *config("--cflags"), *config("--libs")]
    subprocess.run(["cc", HERE / "compression.c", "-o", native, *flags], check=True)
    programs = {"auto": python, "never": python, "always": python, "native": [native]}
    # The pair in C sends the other way, since the two ends of a link measure the line each for itself.
    here = ", ".join(f"{name}_{'r' if name == 'native' else 's'}" for name in programs)
    there = ", ".join(f"{name}_{'s' if name == 'native' else 'r'}" for name in programs)
    model(
        sites.folder,
        programs,
        f'sites: {{south: {{relay: "127.0.0.1:{sites.south.local}"}}}}',
        "hosts:",
        f"  localhost: {{components: [{here}]}}",
        f"  far: {{site: south, start: [env], components: [{there}]}}",
        "links: {never_s: {compress: never}, always_r: {compress: always}}",
    )
    # The streams of a link carry some 20 MB/s together.
    sites.line.pause = 0.05
    code, out = sites.run()
    assert code == 0, out

    for name in ("auto", "never", "always"):
        assert printed(sites.folder, f"{name}_r") == expected, name
    assert printed(sites.folder, "native_r") == "the same"
    of = conduits(sites.folder)
    for name in ("auto", "native"):
        smooth = of[f"{name}_s.smooth"]
        # The rate of the line is known once the first messages have come.
        assert STEPS // 2 < smooth["compressed"] < STEPS, smooth
        assert smooth["uncompressed_bytes"] > 2 * smooth["bytes"], smooth
        assert of[f"{name}_s.noise"]["compressed"] == 0, of
    for port in ("smooth", "noise"):
        assert of[f"never_s.{port}"]["compressed"] == 0, of
    assert of["always_s.smooth"]["compressed"] == STEPS, of
    # What does not become smaller is sent as it is.
    assert of["always_s.noise"]["compressed"] == 0, of
    table = subprocess.run([TITIN, "profile", "run"], cwd=sites.folder, capture_output=True, text=True, check=True)
    assert "compressed" in table.stdout and ":1" in table.stdout, table.stdout


def test_within_a_host_tcp_compresses_if_told_to_and_else_nothing_does(tmp_path: Path) -> None:
    python, expected = program(tmp_path)
    pins = ", ".join(f"{name}_s.smooth: tcp" for name in ("auto", "always"))
    links = "links: {default: {compress: always}, auto_s: {compress: auto}}"
    model(tmp_path, {"auto": python, "always": python}, f"medium: {{{pins}}}", links)
    done = subprocess.run(
        [TITIN, "run", "model.ymmsl", "--run-dir", "run"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    of = conduits(tmp_path)
    assert {name: conduit["compressed"] for name, conduit in of.items() if conduit["compressed"]} == {
        "always_s.smooth": STEPS
    }
    assert of["always_s.smooth"]["medium"] == "tcp"
    for name in ("auto", "always"):
        assert printed(tmp_path, f"{name}_r") == expected, name


#: A sender on asyncio with a small buffer, whose calls come back and are made again, and its receivers.
SEVERAL = """\
import asyncio, sys

import numpy as np
import titin
import titin.aio

role, steps = sys.argv[1], 30


def data(step):
    return np.arange(30_000.0) // 100 + step


async def send():
    async with titin.aio.Instance(o_i=["out"]) as instance:
        await instance.reuse()
        for step in range(steps):
            await instance.send("out", data(step), timestamp=float(step))


if role == "sender":
    asyncio.run(send())
    sys.exit()
with titin.Instance(**{"f_init" if role == "latest" else "s": ["in"]}) as instance:
    instance.reuse()
    for step in [steps - 1] if role == "latest" else range(steps):
        got = np.asarray(instance.receive("in").data)
        np.testing.assert_array_equal(got, data(step) * (2.0 if role == "scaled" else 1.0))
print("the same")
"""


def test_several_receivers_filters_and_calls_made_again_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "several.py").write_text(SEVERAL)
    receivers = {"one": "", "two": "", "scaled": "scale(2.0)@sender ", "packed": "zstd(3) ", "latest": "last "}
    lines = ["ymmsl_version: v0.2", "models:", "  several:", "    components:"]
    lines.append("      sender: {ports: {o_i: out}, implementation: sender}")
    for name in receivers:
        port = "f_init" if name == "latest" else "s"
        lines.append(f"      {name}: {{ports: {{{port}: in}}, implementation: {name}}}")
    lines += ["    conduits:", "      sender.out:", *(f"      - {word}{name}.in" for name, word in receivers.items())]
    lines.append("programs:")
    for name in ("sender", *receivers):
        lines.append(f"  {name}: {{executable: {sys.executable}, args: [{tmp_path}/several.py, {name}]}}")
    lines += ["titin:", "  medium: {sender.out: tcp}", "  buffer: {default: {messages: 2}}"]
    lines.append("  links: {default: {compress: always}}")
    (tmp_path / "model.ymmsl").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [TITIN, "run", "model.ymmsl", "--run-dir", "run"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [printed(tmp_path, name) for name in receivers] == ["the same"] * len(receivers)
    command = [TITIN, "profile", "run", "--json"]
    told = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, check=True).stdout
    for conduit in json.loads(told)["conduits"]:
        assert conduit["medium"] == "tcp"
        assert conduit["compressed"] == conduit["messages"] == 30, conduit
        assert conduit["uncompressed_bytes"] == 30 * 240_000 > 2 * conduit["bytes"], conduit
