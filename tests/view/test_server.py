"""The server of a page: who gets in, what a client gets, and what hostile bytes do."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from ..conftest import TITIN, WATCHDOG
from .conftest import pair, save


@pytest.fixture(scope="module")
def over(tmp_path_factory):
    """A run that is over, of two instances."""
    return pair(tmp_path_factory.mktemp("view"))


def test_the_link_works_once(over, view):
    server = view(over)
    status, headers, _ = server.ask(server.entry)
    assert status == 303
    name, _, rest = headers["set-cookie"].partition("=")
    assert name == f"titin_view_{server.port}"
    # The path of the cookie is a secret too: browsers send a cookie to every port of a host.
    assert rest.partition("; ")[2] == f"Path={headers['location']}; HttpOnly; SameSite=Lax"
    status, headers, text = server.ask(server.entry)
    assert (status, "set-cookie" in headers) == (403, False)
    assert "The link works once" in text and "titin view RUN_DIR" in text


def test_nobody_gets_in_without_the_cookie(over, view):
    server = view(over)
    for path in ("/", "/state", "/?token=", f"/?token={'0' * 32}", "/?token=%00", "//state", "/../state"):
        assert server.ask(path)[0] == 403, path
    server.enter()
    assert server.ask(server.page + "state")[0] == 403
    assert server.ask(server.page + "state", Cookie=server.cookie[:-1] + "x")[0] == 403
    assert server.ask("/state", Cookie=server.cookie)[0] == 403
    assert server.ask(server.page + "state", Cookie=server.cookie)[0] == 200


def test_names_and_origins_of_others_are_refused(over, view):
    server = view(over)
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example", "", "localhost:x"):
        status, _, text = server.ask(server.entry, Host=host)
        assert (status, "127.0.0.1 and localhost only" in text) == (403, True), host
    for origin in ("http://evil.example", "null", f"http://localhost:{server.port}"):
        assert server.ask(server.entry, Origin=origin)[0] == 403, origin
    assert server.ask(server.entry, method="POST")[0] == 405
    # None of them has used the link up.
    server.enter()
    own = f"http://127.0.0.1:{server.port}"
    assert server.ask(server.page, Cookie=server.cookie, Origin=own)[0] == 200
    # Through `ssh -L` the port is another one.
    assert server.ask(server.page, Cookie=server.cookie, Host="localhost:8000")[0] == 200


def test_the_page_may_load_nothing_from_elsewhere(over, view):
    server = view(over)
    server.enter()
    _, headers, page = server.ask(server.page, Cookie=server.cookie)
    policy = headers["content-security-policy"]
    nonce = policy.partition("'nonce-")[2].partition("'")[0]
    assert len(nonce) == 32
    assert policy == (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; base-uri 'none'; "
        "form-action 'none'; connect-src 'self'; frame-ancestors 'none'"
    )
    assert page.count(f'nonce="{nonce}"') == 2
    assert f'nonce="{nonce}"' not in server.get()
    for name, value in {
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
        "cross-origin-resource-policy": "same-origin",
        "cache-control": "no-store",
    }.items():
        assert headers[name] == value


def test_what_is_known_of_a_run_that_is_over(over, view):
    server = view(over)
    server.enter()
    facts, state = server.json("facts"), server.json("state")
    assert (facts["model"], facts["components"]) == ("pair", ["sender", "receiver"])
    assert facts["instances"] == [["sender", 0], ["receiver", 1]]
    assert facts["graph"].startswith("<svg") and facts["times"].startswith("<svg")
    [conduit] = facts["conduits"]
    assert (conduit["from"], conduit["to"], conduit["pairs"]) == ("sender.out", "receiver.in", 1)
    assert (conduit["messages"], conduit["bytes"]) == (1, 16)
    assert (state["phase"], state["report"], state["waits"]) == ("done", None, [])
    sender, receiver = state["instances"]
    assert (sender["state"], sender["messages"], sender["bytes"], sender["simulated"]) == ("done", 1, 16, 3.5)
    assert receiver["messages"] == 0
    times = sender["times"]
    # Both instances are in this process.
    assert sender["process"]["pid"] == receiver["process"]["pid"] == os.getpid()
    assert sender["process"]["seconds"] > 0.1 and sender["process"]["memory"] > 10e6
    assert times["total"] == pytest.approx(times["compute"] + times["waiting"] + times["sending"])


def test_logs_are_those_of_instances_alone(over, view):
    server = view(over)
    server.enter()
    assert "sender" in server.json("log?of=")["text"]
    (over / "instances/sender").mkdir(exist_ok=True)
    (over / "instances/sender/stderr.txt").write_bytes(b"x" * 200_000 + b"\nlast \xff <b>words</b>\n")
    found = server.json("log?of=sender&stream=stderr")
    assert found == {"text": "last \ufffd <b>words</b>\n", "cut": True}
    for name in ("..", "../..", "%2e%2e", "sender/../../..", "nobody", "sender%00"):
        assert server.ask(f"{server.page}log?of={name}", Cookie=server.cookie)[0] == 404, name
    # A pipe in place of a log holds nobody up.
    (over / "instances/sender/stderr.txt").unlink()
    os.mkfifo(over / "instances/sender/stderr.txt")
    assert server.json("log?of=sender&stream=stderr") == {"text": "", "cut": False}
    (over / "instances/sender/stderr.txt").unlink()


def test_hostile_bytes_get_no_further(over, view):
    server = view(over)
    memory = resident(server.process.pid)
    for hostile in (
        os.urandom(4096),
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 100_000,
        b"GET /" + b"a" * 10_000_000,
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n\0\0\0",
    ):
        with socket.create_connection(("127.0.0.1", server.port), timeout=WATCHDOG) as stranger:
            try:
                stranger.sendall(hostile)
                stranger.shutdown(socket.SHUT_WR)
                answer = stranger.recv(65536)
            except OSError:
                # The server has closed the connection in the middle.
                answer = b""
            assert not answer or answer.split(b" ")[1][:1] == b"4", answer
    assert resident(server.process.pid) < memory + 20e6
    server.enter()
    assert server.json("state")["phase"] == "done"


def test_silent_strangers_hold_no_place_for_long(over, view):
    server = view(over)
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
    for one in silent[::2]:
        one.sendall(b"GET / HT")
    server.enter()
    assert server.json("state")["phase"] == "done"
    for one in silent:
        one.close()


def test_many_ask_at_once(over, view):
    server = view(over)
    server.enter()
    found = []
    threads = [threading.Thread(target=lambda: found.append(server.json("state")["phase"])) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["done"] * 40


def test_it_listens_on_the_loopback_network_only(over, view):
    server = view(over)
    listening = [
        line.split()[1]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[3] == "0A" and int(line.split()[1].partition(":")[2], 16) == server.port
    ]
    assert listening == [f"0100007F:{server.port:04X}"]


def test_a_port_that_is_taken_is_named(over, view):
    server = view(over)
    command = [TITIN, "view", over, "--port", str(server.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: cannot serve the page at 127.0.0.1:{server.port}: Address already in use")


def test_over_ssh_a_line_is_printed(over, view):
    server = view(over, SSH_CONNECTION="192.0.2.7 50000 198.51.100.4 22", USER="ada")
    line = f"ssh -N -L {server.port}:127.0.0.1:{server.port} ada@198.51.100.4"
    assert line in server.end().splitlines()
    odd = view(over, SSH_CONNECTION="192.0.2.7 50000 2001:db8::1 22", USER="a;rm -r x")
    assert odd.end().splitlines()[-1].endswith(" 2001:db8::1")
    assert "ssh" not in view(over, SSH_CONNECTION="").end()


def hostile(over: Path, folder: Path) -> Path:
    """A copy of a run directory, for a test to spoil."""
    return Path(shutil.copytree(over, folder / "run"))


@pytest.mark.parametrize("name", ["end.json", "performance.sqlite", "configuration.ymmsl", "connection.json"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "zeros", "empty", "types", "deep", "noise"])
def test_a_spoiled_run_directory_holds_nobody_up(over, view, tmp_path, name, kind):
    file = hostile(over, tmp_path) / name
    file.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind == "zeros":
        file.symlink_to("/dev/zero")
    else:
        texts = {"empty": b"", "deep": b"[" * 1_000_000, "noise": os.urandom(100_000)}
        types = b'{"outcome": 1, "model": [], "seconds": "x", "instances": {"a": -1}, "addresses": 7, "secret": null}'
        file.write_bytes(texts.get(kind, types))
    server = view(file.parent)
    server.enter()
    expected = "silent" if name == "connection.json" else "lost" if name == "performance.sqlite" else "done"
    state = server.json("state")
    assert state["phase"] in {expected, "done"}, state
    assert json.loads(server.get("facts"))["instances"]
    assert server.get().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "has version 2, and this release of titin reads version 1"),
        ({"version": None}, "has no version, and this release of titin reads version 1"),
        ({"seconds": "long"}, 'cannot be read: invalid type: string "long"'),
    ],
)
def test_a_record_of_another_version_is_told(over, view, tmp_path, change, said):
    directory = hostile(over, tmp_path)
    end = json.loads((directory / "end.json").read_text())
    assert end["version"] == 1
    (directory / "end.json").write_text(json.dumps({**end, **change}))
    server = view(directory)
    server.enter()
    state = server.json("state")
    # The profile says yet that the run is done.
    assert state["phase"] == "done" and said in state["report"], state


def test_a_link_out_of_the_run_directory_is_not_followed(over, view, tmp_path):
    directory = hostile(over, tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("the key of the user")
    sender = directory / "instances/sender"
    sender.mkdir(exist_ok=True)
    (sender / "stdout.txt").unlink(missing_ok=True)
    (sender / "stdout.txt").symlink_to(secret)
    (directory / "titin_manager.log").unlink()
    (directory / "titin_manager.log").symlink_to(secret)
    end = json.loads((directory / "end.json").read_text())
    outside = tmp_path / "stderr.txt"
    outside.write_text("the key of the user")
    end["instances"][1]["name"] = "../.."
    (directory / "end.json").write_text(json.dumps(end))
    server = view(directory)
    server.enter()
    for query in ("log?of=", "log?of=sender", "log?of=../..&stream=stderr"):
        assert server.json(query) == {"text": "", "cut": False}, query
    assert "the key of the user" not in save(directory, tmp_path / "page.html")


def test_a_log_of_many_gigabytes_is_read_at_its_end(over, view, tmp_path):
    directory = hostile(over, tmp_path)
    with (directory / "titin_manager.log").open("ab") as log:
        log.truncate(10 << 30)
        log.seek(0, os.SEEK_END)
        log.write(b"\nlast\n")
    server = view(directory)
    server.enter()
    memory = resident(server.process.pid)
    assert server.json("log?of=") == {"text": "last\n", "cut": True}
    assert resident(server.process.pid) < memory + 20e6


@pytest.mark.parametrize("options", [[], ["--save", "page.html"]])
def test_what_is_no_run_is_refused(tmp_path, options):
    for name in (tmp_path, tmp_path / "none"):
        done = subprocess.run([TITIN, "view", name, *options], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 2
        if name == tmp_path:
            assert done.stderr == f"error: {name} is no run directory: it has no folder instances\n"
        else:
            assert done.stderr.startswith(f"error: there is no run directory {name}: give the directory that"), (
                done.stderr
            )
    assert list(tmp_path.iterdir()) == []


def resident(pid: int) -> int:
    """Bytes of memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
