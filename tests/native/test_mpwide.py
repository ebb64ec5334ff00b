"""Programs written for MPWide: compiled by MPWide.h, and run with their other ends."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..conftest import config
from .conftest import COMPILERS, HERE
from .test_paths import make_key

Program = subprocess.Popen[str]
Start = Callable[..., Program]


def compiled(language: str, folder: Path) -> Path:
    """The program of a language, compiled as a project of MPWide does."""
    program = folder / language
    include = f"-I{config('--include-dir')[0]}/mpwide"
    compiler = [*COMPILERS[language], "-Wall", "-Wextra", "-Werror", "-g", *config("--cflags"), include]
    source = HERE / f"mpwide.{language}"
    subprocess.run([*compiler, source, "-o", program, *config("--libs"), "-lpthread"], check=True)
    return program


@pytest.fixture(scope="module")
def cpp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("cpp", tmp_path_factory.mktemp("mpwide"))


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_key(tmp_path_factory.mktemp("key"))


@pytest.fixture
def start(cpp: Path, key: Path) -> Iterator[Start]:
    """Starts a scene of the program."""
    programs: list[Program] = []

    def begin(*words: object, **environment: str) -> Program:
        environment = os.environ | {"TITIN_PATH_KEY": str(key)} | environment
        command = [str(word) for word in (cpp, *words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        programs.append(subprocess.Popen(command, env=environment, text=True, **pipes))
        return programs[-1]

    yield begin
    for program in programs:
        program.kill()
        program.communicate()


def free_ports(count: int) -> list[int]:
    """Ports at which nobody listens."""
    sockets = [socket.create_server(("", 0)) for _ in range(count)]
    ports = [place.getsockname()[1] for place in sockets]
    for place in sockets:
        place.close()
    return ports


def listed(ports: list[int]) -> str:
    return ",".join(map(str, ports))


def well(*programs: Program) -> list[str]:
    """What programs print that end well."""
    said = [program.communicate(timeout=60) for program in programs]
    assert [program.returncode for program in programs] == [0] * len(programs), said
    return [output for output, _ in said]


def badly(program: Program) -> str:
    """The one line of a program that ends with an error of MPWide."""
    _, errors = program.communicate(timeout=60)
    assert program.returncode == 1, errors
    assert re.fullmatch(r"MPWide: MPW_\w+: .+\n", errors), errors
    return errors


@pytest.mark.parametrize("streams", [1, 3, 8])
def test_a_path(start: Start, streams: int) -> None:
    (port,) = free_ports(1)
    outputs = well(*(start("path", port, streams, side) for side in (0, 1)))
    channels = "channel 0" if streams == 1 else f"{streams} streams, channels 0 to {streams - 1}"
    assert outputs == [f"path 0 (localhost:{port}): open, {channels}\n"] * 2


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_channels(start: Start, count: int) -> None:
    ports = free_ports(count)
    outputs = well(*(start("channels", listed(ports), side) for side in (0, 1)))
    lines = [f"channel {number} (localhost:{port}): open\n" for number, port in enumerate(ports)]
    assert outputs == ["".join(lines)] * 2


def test_many_channels_open_at_once(start: Start) -> None:
    ports = free_ports(60)
    well(*(start("channels", listed(ports), side) for side in (0, 1)))


def test_both_ends_in_one_process(start: Start) -> None:
    (port,) = free_ports(1)
    well(start("threads", port, 3))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_ring(start: Start, count: int) -> None:
    ways = [free_ports(count) for _ in range(3)]
    well(*(start("ring", listed(ways[place]), listed(ways[place - 1]), place) for place in range(3)))


@pytest.mark.parametrize("count", [1, 2])
def test_a_relay_of_channels(start: Start, count: int) -> None:
    ports = free_ports(2 * count)
    one, other = listed(ports[:count]), listed(ports[count:])
    well(start("channels", one, 0), start("channels", other, 1), start("relay", one, other))


def test_a_relay_of_paths(start: Start) -> None:
    one, other = free_ports(2)
    well(start("path", one, 3, 0), start("path", other, 3, 1), start("relay_paths", one, other, 3))


def test_channels_are_closed_and_opened_again(start: Start) -> None:
    ports = listed(free_ports(2))
    well(*(start("reopen", ports, side) for side in (0, 1)))


def test_what_needs_no_other_end(start: Start) -> None:
    (output,) = well(start("alone", TITIN_PATH_KEY=""))
    assert output == (
        "path 0 (localhost:16256): closed, 4 streams, channels 0 to 3\n"
        "path 1 (far.example:16260): closed, 2 streams, channels 4 to 5\n"
    )


def test_pacing_holds(start: Start) -> None:
    (port,) = free_ports(1)
    well(*(start("paced", port, side) for side in (0, 1)))


def test_an_end_may_come_later(start: Start) -> None:
    (port,) = free_ports(1)
    first = start("path", port, 2, 0)
    time.sleep(1.5)
    well(first, start("path", port, 2, 1))


def test_the_end_of_the_program_waits_for_its_messages(start: Start) -> None:
    (port,) = free_ports(1)
    well(*(start("leave", port, side) for side in (0, 1)))


def test_the_functions_for_c(tmp_path: Path, key: Path) -> None:
    program = compiled("c", tmp_path)
    *ports, path = free_ports(4)
    environment = os.environ | {"TITIN_PATH_KEY": str(key)}
    ends = [subprocess.Popen([program, listed(ports), str(path), side], env=environment) for side in "01"]
    assert [end.wait(timeout=60) for end in ends] == [0, 0]


@pytest.mark.parametrize(("count", "sent", "wanted"), [(1, 10, 11), (1, 11, 10), (3, 10, 11), (3, 2, 3), (3, 3, 1)])
def test_a_wrong_size_is_an_error_at_both_ends(start: Start, count: int, sent: int, wanted: int) -> None:
    ports = listed(free_ports(count))
    ends = [start("send", ports, sent), start("recv", ports, wanted)]
    sender, receiver = map(badly, ends)
    assert receiver.startswith("MPWide: MPW_Recv: ") and " dropped: " in receiver
    assert sender.startswith("MPWide: MPW_Recv: ") and "the receiver has dropped message" in sender
    for text in (sender, receiver):
        assert "give both ends the same size" in text
        if count == 1:
            assert f"path 0 (localhost:{ports})" in text
            assert f"{sent} bytes were sent where {wanted} are to be received" in text


@pytest.mark.parametrize("count", [1, 3])
def test_a_message_without_room_is_an_error_at_both_ends(start: Start, count: int) -> None:
    ports = listed(free_ports(count))
    sender, receiver = map(badly, [start("any", ports, 100, 50), start("any", ports, 50, 99)])
    assert receiver.startswith("MPWide: MPW_DSendRecv: ")
    for text in (sender, receiver):
        assert "100 bytes were sent where there is room for 99: give a larger maxrecvsize" in text


def test_ends_with_different_numbers_of_streams(start: Start) -> None:
    (port,) = free_ports(1)
    ends = [start("create", "localhost", port, streams) for streams in (2, 5)]
    said = [end.communicate(timeout=60) for end in ends]
    for (output, errors), own, other in ((said[0], 2, 5), (said[1], 5, 2)):
        assert output == "-1\n0\n"
        assert errors == (
            f"MPWide: MPW_CreatePath: this end has streams: {own}, and the other end: {other}; "
            "give both ends the same number (a channel of MPW_Init is one stream)\n"
        )


def test_a_key_is_needed_and_the_same_one(start: Start, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    output, errors = start("create", "localhost", port, 1, TITIN_PATH_KEY="").communicate(timeout=60)
    assert output == "-1\n0\n"
    assert errors.startswith("MPWide: MPW_CreatePath: no key is given: make one with `titin path key FILE`")
    start("create", "0", port, 1)
    stranger = start("create", "localhost", port, 1, TITIN_PATH_KEY=str(make_key(tmp_path)))
    output, errors = stranger.communicate(timeout=60)
    assert output == "-1\n0\n"
    assert "the other end has another key" in errors


def test_nobody_answers(start: Start) -> None:
    (port,) = free_ports(1)
    ends = [start("connect", "localhost", port, 1), start("connect", "0", port, 1)]
    said = [end.communicate(timeout=60) for end in ends]
    assert [output for output, _ in said] == ["-1\n"] * 2
    assert f"nobody answers at localhost:{port}" in said[0][1] and "refused" in said[0][1]
    assert "has no host to call" in said[1][1]


def test_wrong_numbers_of_ports_and_streams(start: Start) -> None:
    for port, streams, text in ((0, 1, "there is no port 0"), (6000, 0, "0 streams"), (6000, 257, "1 to 256")):
        output, errors = start("create", "localhost", port, streams).communicate(timeout=60)
        assert output == "-1\n0\n" and text in errors


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (
            0,
            "MPW_Send: a list of channels has some of path 0 (localhost:{port}): give all of them in their order, 0 to",
        ),
        (1, "MPW_Send: there is no path 7"),
        (2, "MPW_Wait: there is no exchange 0"),
        (3, "MPW_Has_NBE_Finished: there is no exchange 5"),
        (4, "MPW_Send: the size is -1"),
        (5, "MPW_Recv: NULL was given for 1 bytes"),
        (6, "MPW_splitBuf: 0 pieces"),
        (7, "MPW_Send: there is no channel 3: the last one is 2"),
        (8, "MPW_ReOpenChannels: path 0 (localhost:{port}) is open"),
        (9, "MPW_Send: path 0 (localhost:{port}) is not open: call MPW_ConnectPath"),
        (10, "MPW_Wait: there is no exchange 0"),
        (11, "MPW_Init: there is no port 65536"),
    ],
)
def test_misuse_ends_the_program(start: Start, case: int, text: str) -> None:
    (port,) = free_ports(1)
    other = start("misuse", port, -1)
    assert text.format(port=port) in badly(start("misuse", port, case))
    well(other)
