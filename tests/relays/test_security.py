"""What relays refuse: strangers, keys that do not count, runs that are not admitted, and floods.

The tests speak TLS and titin's formats by themselves, as a program that means ill would.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import hmac
import json
import os
import random
import re
import resource
import select
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..conftest import TITIN, needs
from .conftest import Relay, Sites, expected_digests, wait_until
from .test_sites import done, write_drain

#: Seconds in which a relay refuses.
PROMPT = 5.0

#: Seconds in which a relay logs what it has refused.
LOGGED = 2.0

#: Seconds in which a relay closes a connection that does not go on. The relay does that after 10 s.
PATIENT = 15.0

#: The number of the run that stands for the key of the relay.
RELAY_KEY = 0

#: The run that the tests have a relay admit, and its permit.
RUN, PERMIT = 0x5EED, bytes(range(32))

ALPN = "titin-relay/1"


def encode(message: object) -> bytes:
    """A message of relays."""
    return framed(json.dumps(message).encode())


def framed(body: bytes) -> bytes:
    """A message with this text."""
    return struct.pack("<I", len(body)) + body


def hello(run: int) -> bytes:
    """The first message of a process that dials its relay."""
    return struct.pack("<8sB7x4HQ", b"TITIN\r\n\0", 6, 1, 1, 1, 1, run) + os.urandom(32)


#: The first message of a process that dials for a session.
SESSION_HELLO = hello(0)[:8] + b"\x07" + hello(0)[9:]


def greeting(purpose: object, versions: tuple[int, int] = (1, 1)) -> dict[str, object]:
    """The first message of a relay that has dialled."""
    return {"versions": versions, "purpose": purpose}


def circuit(port: int, run: int = RUN) -> dict[str, object]:
    """The greeting of a relay that wants a circuit to a port at north."""
    destination = {"site": "north", "host": "127.0.0.1", "port": port}
    return greeting({"circuit": {"run": run, "destination": destination}})


def permit_of(run: int, *sites: str) -> dict[str, object]:
    """A run, as managers and relays tell of it."""
    return {"run": run, "permit": PERMIT.hex(), "name": "ours", "sites": sites}


def openssl(*words: str | Path) -> bytes:
    """What a command of OpenSSL prints."""
    command: list[str | Path] = ["openssl", *words]
    return subprocess.run(command, check=True, capture_output=True, timeout=60).stdout


@dataclass
class Key:
    """A key with a certificate, signed by the key itself."""

    file: Path
    certificate: Path

    @classmethod
    def make(cls, folder: Path, days: int = 1) -> Key:
        """Makes a key whose certificate counts for a number of days."""
        needs("openssl")
        key = cls(folder / "stranger.key", folder / "stranger.pem")
        words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=stranger"
        openssl(*words.split(), "-keyout", key.file, "-out", key.certificate)
        again = openssl("x509", "-in", key.certificate, "-signkey", key.file, "-days", str(days))
        key.certificate.write_bytes(again)
        return key

    @property
    def fingerprint(self) -> str:
        """The fingerprint, as relays write it."""
        public = openssl("pkey", "-in", self.file, "-pubout", "-outform", "DER")
        return "sha256:" + hashlib.sha256(public).hexdigest()


def tls(key: Key | None, *, alpn: str | None = ALPN, most: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """How a relay dials, or how one that is no relay does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if key:
        context.load_cert_chain(key.certificate, key.file)
    if alpn:
        context.set_alpn_protocols([alpn])
    if most:
        context.maximum_version = most
    return context


class Connection:
    """A connection to a port of a relay."""

    def __init__(self, port: int | None) -> None:
        """Connects."""
        assert port
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PROMPT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        #: How the log of the relay names the connection.
        self.name = "{}:{}".format(*self.socket.getsockname())
        self.sent = b""

    def secure(self, context: ssl.SSLContext) -> Connection:
        """Begins TLS."""
        self.socket = context.wrap_socket(self.socket)
        return self

    def send(self, data: bytes) -> None:
        """Sends bytes."""
        self.sent += data
        self.socket.sendall(data)

    def receive(self, count: int) -> bytes:
        """The next bytes."""
        found = b""
        while len(found) < count:
            piece = self.socket.recv(count - len(found))
            assert piece, f"the connection ends after {found!r}"
            found += piece
        return found

    def ask(self, message: object) -> Any:
        """The answer to a message."""
        self.send(encode(message))
        return self.hear()

    def hear(self) -> Any:
        """The next message."""
        (length,) = struct.unpack("<I", self.receive(4))
        return json.loads(self.receive(length))

    def prove(self, run: int, key: bytes) -> bool:
        """Dials as a process of a run does. Returns whether the relay has proved itself in its turn."""
        first = hello(run)
        self.send(first)
        second = self.receive(64)
        ours, theirs = (
            hmac.digest(key, role + first + second, "sha256") for role in (b"titin dialler", b"titin listener")
        )
        self.send(ours)
        return self.receive(32) == theirs

    def rest(self, within: float = PROMPT) -> bytes:
        """What comes until the relay ends the connection, which it has to do in time."""
        found = b""
        deadline = time.monotonic() + within
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while True:
                self.socket.settimeout(max(0.01, deadline - time.monotonic()))
                piece = self.socket.recv(1 << 16)
                if not piece:
                    break
                found += piece
        return found


Dial = Callable[[int | None], Connection]


@pytest.fixture
def dial() -> Iterator[Dial]:
    """Makes connections, which end with the test."""
    with contextlib.ExitStack() as stack:

        def make(port: int | None) -> Connection:
            connection = Connection(port)
            stack.callback(lambda: connection.socket.close())
            return connection

        yield make


@pytest.fixture
def north(relays: Callable[..., Relay]) -> Relay:
    """A relay with an open port, which the test starts."""
    return relays("north")


@pytest.fixture
def guest(north: Relay, tmp_path: Path) -> ssl.SSLContext:
    """The TLS of a relay that north trusts as that of the site `guest`."""
    key = Key.make(tmp_path)
    north.titin("trust", "guest", key.fingerprint)
    return tls(key)


def access(relay: Relay) -> bytes:
    """The key by which a relay knows its managers."""
    return bytes.fromhex((relay.folder / "access").read_text().strip())


def admit(relay: Relay, dial: Dial, *sites: str) -> Connection:
    """Has a relay admit the run of the tests, as long as the connection stands."""
    connection = dial(relay.local)
    assert connection.prove(RELAY_KEY, access(relay))
    answer = connection.ask({"admit": permit_of(RUN, *sites)})
    assert answer["admitted"]["site"] == relay.site, answer
    return connection


def configure(relay: Relay, more: str) -> None:
    """Adds lines to the last peer of a relay that has not been started."""
    with (relay.folder / "relay.toml").open("a") as file:
        file.write(more + "\n")


def has_logged(relay: Relay, *words: str) -> None:
    """Waits for a line in the log with all of the words."""
    wait_until(
        lambda: any(all(word in line for word in words) for line in relay.log.splitlines()),
        f"no line with {words} in {relay.folder / 'log'}",
        LOGGED,
    )


def reload(relay: Relay, has_read: Callable[[], object]) -> None:
    """Has a relay read its configuration again."""
    assert relay.process
    relay.process.send_signal(signal.SIGHUP)
    wait_until(has_read, "the configuration is not read again", PROMPT)


def goes_on(relay: Relay) -> None:
    """The relay serves."""
    assert relay.status["site"] == relay.site


def memory(relay: Relay, what: str) -> float:
    """Megabytes of memory of a relay: `VmRSS` now, or `VmHWM` at most so far."""
    assert relay.process
    found = re.search(rf"^{what}:\s*(\d+) kB", Path(f"/proc/{relay.process.pid}/status").read_text(), re.M)
    assert found
    return int(found[1]) / 1000


# The open port

YESTERDAY = f"{datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1):%Y-%m-%d}"

STRANGERS = [
    pytest.param({"has_key": False}, "peer sent no certificates", id="without_a_key"),
    pytest.param({"trust": None}, "the key {fingerprint} is not trusted", id="with_an_unknown_key"),
    pytest.param({"days": -1}, "the certificate has expired", id="with_an_expired_certificate"),
    pytest.param({"until": YESTERDAY}, "until a day that is over", id="with_a_past_key"),
    pytest.param({"most": ssl.TLSVersion.TLSv1_2}, "SupportedVersionsExtensionRequired", id="with_tls_1_2"),
    pytest.param({"alpn": "h2"}, "doesn't support any known protocol", id="with_another_protocol"),
    pytest.param({"alpn": None}, "protocol", id="without_a_protocol"),
]


@pytest.mark.parametrize(("stranger", "why"), STRANGERS)
def test_a_stranger_at_the_open_port_is_refused(
    north: Relay, dial: Dial, tmp_path: Path, stranger: dict[str, Any], why: str
) -> None:
    of: dict[str, Any] = {"has_key": True, "days": 1, "trust": [], "until": None, "alpn": ALPN, "most": None} | stranger
    key = Key.make(tmp_path, of["days"])
    if of["has_key"] and of["trust"] is not None:
        north.titin("trust", "other", key.fingerprint, *of["trust"])
    if of["until"]:
        # The last entry in the file.
        with (north.folder / "relay.toml").open("a") as config:
            config.write(f'until = "{of["until"]}"\n')
    north.start()
    connection = dial(north.listen)
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        connection.secure(tls(key if of["has_key"] else None, alpn=of["alpn"], most=of["most"]))
        # By TLS 1.3 a client may speak before the relay has seen the certificate.
        connection.send(encode(greeting("control")))
        assert connection.socket.recv(1) == b""
    has_logged(north, "WARN", "refused", connection.name, why.format(fingerprint=key.fingerprint))
    assert not any(peer["connected"] for peer in north.status["peers"])


def begin_and_record(connection: Connection, context: ssl.SSLContext, message: bytes) -> bytes:
    """Does the handshake of TLS and sends a message. Returns all bytes that have been sent."""
    come, go = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(come, go)
    while True:
        with contextlib.suppress(ssl.SSLWantReadError):
            session.do_handshake()
            session.write(message)
            connection.send(go.read())
            return connection.sent
        connection.send(go.read())
        come.write(connection.socket.recv(1 << 16))


def test_a_replayed_handshake_is_refused(north: Relay, guest: ssl.SSLContext, dial: Dial) -> None:
    north.start()
    connection = dial(north.listen)
    recorded = begin_and_record(connection, guest, encode(greeting("control")))
    wait_until(lambda: north.peer("guest")["connected"], "the relay is not let in", PROMPT)
    connection.socket.close()
    wait_until(lambda: not north.peer("guest")["connected"], "the relay has not noticed the end", PROMPT)
    again = dial(north.listen)
    again.send(recorded)
    again.rest()
    has_logged(north, "WARN", "refused", again.name, "cannot decrypt peer's message")
    assert north.log.count(' connected site="guest"') == 1
    assert not north.peer("guest")["connected"]


def test_a_relay_that_answers_in_place_of_another_is_refused(relays: Callable[..., Relay]) -> None:
    north, east, south = relays("north"), relays("east"), relays("south", open_port=False)
    south.trust(north, port=east.listen)
    east.trust(south)
    for relay in (east, south):
        relay.start()
    has_logged(south, "WARN", "north", f"the relay that answers has the key {east.fingerprint}", north.fingerprint)
    south.trust(east)
    reload(south, lambda: len(south.status["peers"]) == 2)
    has_logged(south, "WARN", "the relay of the site east has answered in place of that of north")
    assert not any(peer["connected"] for peer in south.status["peers"])


def test_a_revoked_key_loses_its_connections_until_it_is_trusted_again(sites: Sites) -> None:
    north, south = sites.north, sites.south
    config = north.folder / "relay.toml"
    trusting = config.read_text()
    sites.write(steps=60, most=100_000, pause=0.03)
    process = sites.begin()
    wait_until(lambda: south.peer("north")["circuits"] >= 2, "there are no circuits")
    assert "is trusted no more" in north.titin("distrust", "south")
    reload(north, lambda: north.status["peers"] == [])
    wait_until(lambda: not south.peer("north")["connected"], "the connection stays", PROMPT)
    # A session dials again once its circuit is cut.
    has_logged(south, "no circuit", "north/")
    has_logged(north, "no longer trusted", "south")
    has_logged(north, "WARN", "refused", f"the key {south.fingerprint} is not trusted")
    assert not south.peer("north")["connected"]
    assert process.poll() is None
    config.write_text(trusting)
    reload(north, lambda: north.peer("south")["connected"])
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert sites.printed() == expected_digests(60, 100_000)


def test_a_relay_that_is_not_trusted_says_so_with_its_key(relays: Callable[..., Relay]) -> None:
    north, south = relays("north"), relays("south", open_port=False)
    south.trust(north, port=north.listen)
    north.start()
    south.start()
    has_logged(south, "WARN", "may not trust the key of this one", south.fingerprint, "titin relay trust")
    assert south.fingerprint in south.peer("north")["down"]
    north.trust(south)
    reload(north, lambda: north.status["peers"])
    wait_until(lambda: south.peer("north")["connected"], "the relays do not connect")
    assert south.peer("north")["down"] is None
    north.kill()
    has_logged(south, "disconnected")
    assert "https://" not in south.log
    assert south.peer("north")["down"]


def test_a_relay_that_is_awaited_and_comes_with_another_key_is_told(relays: Callable[..., Relay]) -> None:
    north, south = relays("north"), relays("south", open_port=False)
    north.titin("trust", "south", "sha256:" + "0" * 64)
    south.trust(north, port=north.listen)
    north.start()
    assert "was refused" not in north.peer("south")["down"]
    south.start()
    has_logged(north, "WARN", "refused", f"the key {south.fingerprint} is not trusted")
    assert f"ago a relay with the key {south.fingerprint} was refused" in north.peer("south")["down"]


def test_a_changed_entry_is_not_called_untrusted(sites: Sites) -> None:
    north, south = sites.north, sites.south
    north.titin("trust", "south", south.fingerprint, "--until", "2999-12-31", "--replace")
    reload(north, lambda: "has changed" in north.log)
    has_logged(north, "disconnected", "south", "its entry in relay.toml")
    assert "trusted" not in north.log
    wait_until(lambda: north.peer("south")["connected"], "the relays do not connect again")


def test_a_site_behind_another_and_a_relay_that_is_awaited_are_shown(north: Relay) -> None:
    north.titin("trust", "guest", "sha256:" + "0" * 64)
    north.titin("trust", "south", "--via", "guest")
    north.start()
    assert "has not connected" in north.peer("guest")["down"]
    assert re.search(r"^south +via guest ", north.titin("status"), re.M)


def test_a_revoked_key_takes_its_runs_along(north: Relay, guest: ssl.SSLContext, dial: Dial) -> None:
    config = north.folder / "relay.toml"
    trusting = config.read_text()
    north.start()
    for _ in range(15):
        control = dial(north.listen).secure(guest)
        assert control.ask(greeting("control")) == "welcome"
        control.send(encode({"runs": [permit_of(RUN, "guest")]}))
        wait_until(lambda: north.status["runs"], "the run is not admitted", PROMPT)
        config.write_text(trusting[: trusting.index("[[peer]]")])
        reload(north, lambda: not north.status["peers"])
        control.rest()
        wait_until(lambda: not north.status["runs"], "the run of the revoked relay stays", LOGGED)
        config.write_text(trusting)
        reload(north, lambda: north.status["peers"])


def test_a_relay_of_another_version_is_refused_with_both_ranges(
    north: Relay, guest: ssl.SSLContext, dial: Dial
) -> None:
    north.start()
    other = dial(north.listen).secure(guest)
    answer = other.ask(greeting("control", versions=(2, 3)))
    why = "the relay of the site guest speaks versions 2 to 3, that of north 1 to 1"
    assert answer["refused"]["why"].startswith(why)
    assert answer["refused"]["may_pass"] is False
    assert other.rest() == b""
    has_logged(north, "WARN", "refused", why)
    goes_on(north)


@pytest.mark.parametrize("admitted_for", [[], ["south"]], ids=["of_nobody", "of_others"])
def test_a_trusted_relay_gets_no_circuit_of_a_run(
    north: Relay, guest: ssl.SSLContext, dial: Dial, admitted_for: list[str]
) -> None:
    for site in admitted_for:
        north.titin("trust", site, f"sha256:{'0' * 64}")
    north.start()
    if admitted_for:
        admit(north, dial, *admitted_for)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        peer = dial(north.listen).secure(guest)
        answer = peer.ask(circuit(listener.getsockname()[1]))
        why = f"the run {RUN:016x} is not admitted for the site guest"
        assert why in answer["refused"]["why"]
        assert peer.rest() == b""
        with pytest.raises(BlockingIOError):
            listener.accept()
    has_logged(north, "WARN", "refused", "guest", why)
    goes_on(north)


def test_a_callback_without_a_call_is_refused(north: Relay, guest: ssl.SSLContext, dial: Dial) -> None:
    north.start()
    peer = dial(north.listen).secure(guest)
    peer.send(encode(greeting({"callback": {"call": 1}})))
    assert peer.rest() == b""
    has_logged(north, "WARN", "refused", "guest", "call")
    goes_on(north)


# The port for processes of the site


def unadmitted(north: Relay, dial: Dial) -> Connection:
    """Dials for a run that is not admitted."""
    stranger = dial(north.local)
    assert not stranger.prove(RUN + 1, PERMIT)
    return stranger


def impermissible(north: Relay, dial: Dial) -> Connection:
    """Dials for an admitted run with a wrong permit."""
    stranger = dial(north.local)
    assert not stranger.prove(RUN, bytes(32))
    return stranger


def replayed(north: Relay, dial: Dial) -> Connection:
    """Repeats a good dialler's bytes."""
    good = dial(north.local)
    assert good.prove(RUN, PERMIT)
    stranger = dial(north.local)
    stranger.send(good.sent)
    assert len(stranger.receive(64 + 32)) == 96
    return stranger


def replayed_access(north: Relay, dial: Dial) -> Connection:
    """Repeats a manager's bytes."""
    good = dial(north.local)
    assert good.prove(RELAY_KEY, access(north))
    stranger = dial(north.local)
    stranger.send(good.sent)
    assert stranger.receive(64 + 32)[64:] == bytes(32)
    return stranger


REFUSED_PROOFS = [unadmitted, impermissible, replayed, replayed_access]


def why_refused(of: Callable[[Relay, Dial], Connection]) -> str:
    """What the relay logs of a refused proof."""
    if of is replayed_access:
        return "the key is not that of this relay"
    return "is not admitted, or the permit is another"


@pytest.mark.parametrize("of", REFUSED_PROOFS)
def test_a_wrong_proof_is_answered_by_zeros_and_opens_nothing(
    north: Relay, dial: Dial, of: Callable[[Relay, Dial], Connection]
) -> None:
    north.start()
    admit(north, dial, "north")
    stranger = of(north, dial)
    with contextlib.suppress(ConnectionError):
        stranger.send(encode("status"))
        assert stranger.rest() == b""
    has_logged(north, "WARN", "refused", stranger.name, why_refused(of))
    goes_on(north)


@pytest.mark.parametrize("of", REFUSED_PROOFS)
def test_a_wrong_proof_ends_the_connection_at_once(
    north: Relay, dial: Dial, of: Callable[[Relay, Dial], Connection]
) -> None:
    north.start()
    admit(north, dial, "north")
    stranger = of(north, dial)
    assert stranger.rest(within=1) == b""
    has_logged(north, "WARN", "refused", stranger.name, why_refused(of))
    goes_on(north)


def test_a_relay_takes_no_token(north: Relay, dial: Dial) -> None:
    """Such a connection is for the manager."""
    north.start()
    admit(north, dial, "north")
    stranger = dial(north.local)
    stranger.send(hello(RUN)[:8] + b"\x08" + hello(RUN)[9:])
    assert stranger.rest(within=1) == b""
    has_logged(north, "WARN", "refused", stranger.name, "the connection is meant for a manager")
    goes_on(north)


def test_a_permit_is_no_key_of_the_relay(north: Relay, dial: Dial) -> None:
    north.start()
    admit(north, dial, "north")
    for request in ("status", {"admit": permit_of(RUN + 1, "north")}):
        process = dial(north.local)
        assert process.prove(RUN, PERMIT)
        assert "key" in process.ask(request)["refused"]["why"]
        assert process.rest() == b""
        has_logged(north, "WARN", "refused", process.name, "another key")
    assert [run["run"] for run in north.status["runs"]] == [f"{RUN:016x}"]
    assert PERMIT.hex() not in north.log


# Both ports


def client_hello() -> bytes:
    """The first bytes of TLS."""
    out = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        tls(None).wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    return out.read()


def test_a_beginning_without_an_end_has_no_effect(sites: Sites, dial: Dial, tmp_path: Path) -> None:
    north = sites.north
    key = Key.make(tmp_path)
    north.titin("trust", "guest", key.fingerprint)
    reload(north, lambda: len(north.status["peers"]) == 2)
    of_tls, of_process = client_hello(), hello(RELAY_KEY)
    beginnings = [(north.listen, of_tls[:length], "tls handshake eof") for length in (0, 3, 100, len(of_tls))]
    beginnings += [(north.local, of_process[:length], "early eof") for length in (0, 5, 40)]
    unproved = "the connection has ended before the proof"
    beginnings += [(north.local, of_process + bytes(length), unproved) for length in (0, 31)]
    waiting: list[tuple[Connection, str]] = []
    for port, beginning, why in beginnings:
        ended, waits = dial(port), dial(port)
        for connection in (ended, waits):
            connection.send(beginning)
        ended.socket.shutdown(socket.SHUT_WR)
        ended.rest()
        has_logged(north, "WARN", "refused", ended.name, why)
        waiting.append((waits, waits.name))
    proved, greeted = dial(north.local), dial(north.listen).secure(tls(key))
    assert proved.prove(RELAY_KEY, access(north))
    proved.send(encode("status")[:6])
    greeted.send(encode(greeting("control"))[:6])
    began = time.monotonic()
    sites.write(steps=30, most=50_000)
    done(sites, 30, 50_000)
    for connection, name in [*waiting, (proved, proved.name), (greeted, "guest")]:
        connection.rest(began + PATIENT - time.monotonic())
        what = {proved: "no request", greeted: "no greeting"}.get(connection, "no proof")
        has_logged(north, "WARN", "refused", name, f"{what} in time")
    goes_on(north)


def test_refused_requests_fill_no_log(north: Relay, guest: ssl.SSLContext, dial: Dial) -> None:
    north.start()
    admit(north, dial, "guest")
    for at in range(100):
        holder, other = dial(north.local), dial(north.local)
        assert holder.prove(RUN, PERMIT)
        assert other.prove(RUN, PERMIT)
        # The reason has what the holder of the permit chooses.
        destination = {"site": "north", "host": f"{at}" + 20_000 * "x", "port": 1 + at}
        assert "refused" in holder.ask({"circuit": destination})
        assert "refused" in other.ask({"admit": permit_of(RUN, 100_000 * "y")})
    has_logged(north, "WARN", "no circuit: refused")
    has_logged(north, "WARN", "the request is for another key than the one that was shown")
    assert len(north.log) < 100_000
    goes_on(north)


def test_bytes_without_sense_cost_no_memory(north: Relay, guest: ssl.SSLContext, dial: Dial) -> None:
    north.start()
    goes_on(north)
    before = memory(north, "VmRSS")

    def at_open_port() -> Connection:
        return dial(north.listen)

    def at_local_port() -> Connection:
        return dial(north.local)

    def after_tls() -> Connection:
        return dial(north.listen).secure(guest)

    def after_greeting() -> Connection:
        peer = after_tls()
        assert peer.ask(greeting("control")) == "welcome"
        return peer

    def after_proofs() -> Connection:
        process = dial(north.local)
        assert process.prove(RELAY_KEY, access(north))
        return process

    noise = random.Random(1).randbytes(1 << 20)
    for first in (noise, struct.pack("<I", 1 << 30) + noise, struct.pack("<I", 1 << 20) + noise):
        for begin in (at_open_port, at_local_port, after_tls, after_greeting, after_proofs):
            for _ in range(3):
                connection = begin()
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    for _ in range(8):
                        connection.socket.sendall(first)
                connection.rest()
    has_logged(north, "WARN", "refused", "127.0.0.1", "titin's mark")
    has_logged(north, "WARN", "refused", "127.0.0.1", "corrupt message")
    has_logged(north, "WARN", "refused", "127.0.0.1", "1073741824 bytes are too many")
    has_logged(north, "WARN", "refused", "guest", "1073741824 bytes are too many")
    has_logged(north, "disconnected", "guest", "1073741824 bytes are too many")
    assert memory(north, "VmHWM") - before < 20
    goes_on(north)


@pytest.mark.parametrize("purpose", [None, "control"], ids=["greetings", "control_messages"])
def test_messages_without_an_end_cost_no_memory(
    north: Relay, guest: ssl.SSLContext, dial: Dial, purpose: str | None
) -> None:
    north.start()
    goes_on(north)
    before = memory(north, "VmRSS")
    for _ in range(60):
        peer = dial(north.listen).secure(guest)
        if purpose:
            assert peer.ask(greeting(purpose)) == "welcome"
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            peer.socket.sendall(struct.pack("<I", 1 << 20) + bytes(1 << 19))
    goes_on(north)
    assert memory(north, "VmHWM") - before < 20


@pytest.fixture
def descriptors() -> Iterator[int]:
    """As many descriptors as the system lets the test have."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    yield limits[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


class Flood:
    """Connections that say nothing, made by a thread until it is told to end."""

    def __init__(self, ports: list[int], most: int) -> None:
        """Begins."""
        self.ports = ports
        #: The most connections at a time.
        self.most = most
        self.made = 0
        self.closed_by_relay = 0
        self.is_over = False
        self.sockets: dict[int, socket.socket] = {}
        self.poll = select.poll()
        self.thread = threading.Thread(target=self.make)
        self.thread.start()

    def make(self) -> None:
        """Makes connections, and closes those that the relay has closed."""
        while not self.is_over:
            # A machine has some 28,000 ports for connections to one other port.
            time.sleep(0.001 if self.made > 10_000 else 0)
            if len(self.sockets) < self.most:
                with contextlib.suppress(OSError):
                    one = socket.create_connection(("127.0.0.1", self.ports[self.made % len(self.ports)]), timeout=1)
                    self.sockets[one.fileno()] = one
                    self.poll.register(one, select.POLLIN)
                    self.made += 1
            if self.made % 100 == 0 or len(self.sockets) >= self.most:
                for number, _ in self.poll.poll(10):
                    self.poll.unregister(number)
                    self.sockets.pop(number).close()
                    self.closed_by_relay += 1

    def end(self) -> None:
        """Ends, and closes what is open."""
        self.is_over = True
        self.thread.join()
        for one in self.sockets.values():
            one.close()


def test_ten_thousand_silent_connections_have_no_effect(sites: Sites, descriptors: int) -> None:
    north = sites.north
    assert north.listen
    sites.write(steps=60, most=100_000, pause=0.02)
    before = memory(north, "VmRSS")
    flood = Flood([north.listen, north.local], min(10_000, descriptors // 2))
    try:
        done(sites, 60, 100_000)
        wait_until(lambda: flood.made >= 10_000, "the flood is a trickle")
        assert len(flood.sockets) < 2000
        assert memory(north, "VmHWM") - before < 40
        goes_on(north)
    finally:
        flood.end()
    assert flood.closed_by_relay > 8000


def test_connections_that_are_closed_for_others_are_logged(north: Relay, descriptors: int) -> None:
    north.start()
    flood = Flood([north.local], 1000)
    try:
        wait_until(lambda: flood.closed_by_relay > 100, "the relay closes nothing", PROMPT)
        has_logged(north, "WARN", "too many connections")
    finally:
        flood.end()
    goes_on(north)


# The limits of a peer


@pytest.mark.parametrize("limit", ["streams = 1", "memory = 400000"])
def test_a_peer_has_no_more_circuits_than_it_may(north: Relay, guest: ssl.SSLContext, dial: Dial, limit: str) -> None:
    configure(north, limit)
    north.start()
    admit(north, dial, "guest")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PROMPT)
        port = listener.getsockname()[1]
        first, second, third = (dial(north.listen).secure(guest) for _ in range(3))
        assert first.ask(circuit(port)) == "welcome"
        near, _ = listener.accept()
        refused = second.ask(circuit(port))["refused"]
        why = "the site guest has the most circuits that `streams` and `memory` allow: 1"
        assert refused == {"why": why, "may_pass": True}
        assert second.rest() == b""
        first.send(SESSION_HELLO)
        assert near.recv(64) == SESSION_HELLO
        near.close()
        first.socket.close()
        wait_until(lambda: north.peer("guest")["circuits"] == 0, "the circuit stays", PROMPT)
        assert third.ask(circuit(port)) == "welcome"


@contextlib.contextmanager
def circuit_to_listener(north: Relay, guest: ssl.SSLContext, dial: Dial) -> Iterator[tuple[Connection, socket.socket]]:
    """A circuit of a trusted relay to a listener that is none of titin: both of its ends."""
    north.start()
    admit(north, dial, "guest")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PROMPT)
        peer = dial(north.listen).secure(guest)
        assert peer.ask(circuit(listener.getsockname()[1])) == "welcome"
        near, _ = listener.accept()
        with near:
            yield peer, near


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n" + bytes(64), hello(RUN)], ids=["http", "hello_of_a_process"])
def test_a_circuit_leads_to_no_other_listener(north: Relay, guest: ssl.SSLContext, dial: Dial, said: bytes) -> None:
    with circuit_to_listener(north, guest, dial) as (peer, near):
        peer.send(said)
        assert near.recv(1) == b""
        assert peer.rest() == b""
    goes_on(north)


def test_nothing_of_another_listener_comes_back(north: Relay, guest: ssl.SSLContext, dial: Dial) -> None:
    with circuit_to_listener(north, guest, dial) as (peer, near):
        near.sendall(b"SSH-2.0-a banner\r\n")
        peer.send(SESSION_HELLO)
        assert peer.rest() == b""
    goes_on(north)


def test_a_circuit_too_many_does_not_reach_the_listener_and_is_logged(
    north: Relay, guest: ssl.SSLContext, dial: Dial
) -> None:
    configure(north, "streams = 1")
    north.start()
    admit(north, dial, "guest")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PROMPT)
        port = listener.getsockname()[1]
        first, second = (dial(north.listen).secure(guest) for _ in range(2))
        assert first.ask(circuit(port)) == "welcome"
        near, _ = listener.accept()
        with near:
            assert "refused" in second.ask(circuit(port))
            has_logged(north, "WARN", "guest", "the most circuits that `streams` and `memory` allow")
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.accept()
    goes_on(north)


@pytest.mark.parametrize(("most", "surplus"), [(0, 2), (1, 1)])
def test_a_peer_brings_no_more_runs_than_it_may(
    north: Relay, guest: ssl.SSLContext, dial: Dial, most: int, surplus: int
) -> None:
    configure(north, f"runs = {most}")
    north.start()
    control = dial(north.listen).secure(guest)
    assert control.ask(greeting("control")) == "welcome"
    control.send(encode({"runs": [permit_of(RUN, "guest"), permit_of(RUN + 1, "guest")]}))
    has_logged(north, "WARN", "too many runs", "guest", f"surplus={surplus}", f"most={most}")
    assert [run["from"] for run in north.status["runs"]] == ["guest"] * most
    while not (refusals := control.hear().get("refused_runs")):
        pass
    refused = [RUN, RUN + 1][most:]
    why = f"does not take the run over: the most runs that it takes from the relay of guest are {most}"
    assert [refusal["run"] for refusal in refusals] == refused
    assert all(why in refusal["why"] for refusal in refusals)
    answer = dial(north.listen).secure(guest).ask(circuit(north.local, RUN + 1))
    assert "is not admitted" in answer["refused"]["why"]
    assert not dial(north.local).prove(RUN + 1, PERMIT)
    goes_on(north)


#: The most bytes of a message between relays.
LONGEST = 1 << 20


@pytest.mark.parametrize("answers", [True, False], ids=["silent", "closed"])
def test_calls_without_end_take_little(north: Relay, guest: ssl.SSLContext, dial: Dial, answers: bool) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        configure(north, f'address = "127.0.0.1:{listener.getsockname()[1]}"\nstreams = 20')
        if not answers:
            listener.close()
        north.start()
        control = dial(north.listen).secure(guest)
        assert control.ask(greeting("control")) == "welcome"
        before = memory(north, "VmRSS")
        for _ in range(100):
            control.socket.sendall(500 * encode({"call": {"call": 1}}))
        goes_on(north)
        assert memory(north, "VmHWM") - before < 20
        if answers:
            has_logged(north, "WARN", "guest", "too many calls at a time")
    assert len(north.log.splitlines()) < 50


def greet_with_nonsense(peer: Connection) -> None:
    peer.send(encode({"versions": [1, 1], "purpose": 3000 * "z"}))


def say_nonsense(peer: Connection) -> None:
    assert peer.ask(greeting("control")) == "welcome"
    peer.send(framed(json.dumps((LONGEST - 2) * "y").encode()))


def answer_no_call(peer: Connection) -> None:
    peer.send(encode(greeting({"callback": {"call": 7}})))


def go_at_once(peer: Connection) -> None:
    assert peer.ask(greeting("control")) == "welcome"


@pytest.mark.parametrize("act", [greet_with_nonsense, say_nonsense, answer_no_call, go_at_once])
def test_a_peer_does_not_fill_the_log(
    north: Relay, guest: ssl.SSLContext, dial: Dial, act: Callable[[Connection], None]
) -> None:
    north.start()
    for _ in range(100):
        peer = dial(north.listen).secure(guest)
        act(peer)
        if act is not go_at_once:
            peer.rest()
        peer.socket.close()
    goes_on(north)
    wait_until(lambda: not north.peer("guest")["connected"], "it is still connected", PROMPT)
    assert 30 <= north.log.count('site="guest"') <= 60, north.log
    assert len(north.log) < 30_000


def test_a_long_refusal_of_a_relay_does_not_hide_the_state(north: Relay, guest: ssl.SSLContext, tmp_path: Path) -> None:
    key = Key(tmp_path / "stranger.key", tmp_path / "stranger.pem")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(key.certificate, key.file)
    server.set_alpn_protocols([ALPN])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        configure(north, f'address = "127.0.0.1:{listener.getsockname()[1]}"')
        north.start()
        near, _ = listener.accept()
        with server.wrap_socket(near, server_side=True) as near:
            near.settimeout(PROMPT)
            near.recv(1 << 16)
            refusal = {"refused": {"why": "", "may_pass": True}}
            refusal["refused"]["why"] = "far away " + (LONGEST - 100) * "x"
            near.sendall(framed(json.dumps(refusal, separators=(",", ":")).encode()))
            wait_until(lambda: "far away" in (north.peer("guest")["down"] or ""), "no refusal", PROMPT)
    assert len(north.titin("status", "--json")) < 5000
    assert len(north.log) < 5000


def test_a_long_permit_of_a_peer_does_not_cut_others_off(
    north: Relay, relays: Callable[..., Relay], guest: ssl.SSLContext, dial: Dial
) -> None:
    south = relays("south", open_port=False)
    configure(north, "transit = true")
    north.trust(south)
    south.trust(north, "--transit", port=north.listen)
    north.start()
    south.start()
    wait_until(lambda: north.peer("south")["connected"], "the relays do not connect")
    control = dial(north.listen).secure(guest)
    assert control.ask(greeting("control")) == "welcome"
    # With the hops that north adds, the message would be too long for south.
    long = permit_of(RUN, "south") | {"name": ""}
    room = LONGEST - len(encode({"runs": [long]})) + 4
    control.send(encode({"runs": [long | {"name": room * "x"}]}))
    while not (refusals := control.hear().get("refused_runs")):
        pass
    assert "the names of the run and of its sites have more than" in refusals[0]["why"]
    control.send(encode({"runs": [permit_of(RUN + 1, "south")]}))
    wait_until(lambda: [run["run"] for run in south.status["runs"]] == [f"{RUN + 1:016x}"], "no run", PROMPT)
    # Nor are the refusals of south, which name a site for each of the runs.
    control.send(encode({"runs": [permit_of(RUN + 1 + number, "south", 16_000 * "x") for number in range(60)]}))
    while len(refusals) < 60:
        refusals = control.hear().get("refused_runs", [])
    assert all("knows no way to the site xxx" in refusal["why"] for refusal in refusals)
    time.sleep(1)
    assert north.peer("south")["connected"]
    assert north.log.count("disconnected") == south.log.count("disconnected") == 0, south.log
    manager = dial(north.local)
    assert manager.prove(RELAY_KEY, access(north))
    refused = manager.ask({"admit": permit_of(RUN, "south") | {"name": 20_000 * "x"}})["refused"]
    assert "the names of the run and of its sites have more than" in refused["why"]


def test_a_user_with_many_runs_does_not_push_out_those_of_others(
    north: Relay, guest: ssl.SSLContext, dial: Dial, descriptors: int
) -> None:
    assert descriptors > 2500
    north.start()
    control = dial(north.listen).secure(guest)
    assert control.ask(greeting("control")) == "welcome"
    admit(north, dial, "guest")
    answers = []
    while len(answers) < 2000 and "refused" not in (answers[-1] if answers else {}):
        user = dial(north.local)
        assert user.prove(RELAY_KEY, access(north))
        answers.append(user.ask({"admit": permit_of(RUN + 1 + len(answers), "guest") | {"name": ""}}))
    assert len(answers) == 1024
    refused = answers[-1]["refused"]
    assert "1024 runs here already" in refused["why"] and refused["may_pass"]
    heard: list[dict[str, object]] = []
    while len(heard) < 1024:
        heard = control.hear().get("runs", heard)
        assert not heard or RUN in [run["run"] for run in heard]
    assert north.log.count("admitted") < 1100
    goes_on(north)


def test_a_request_that_goes_round_in_a_ring_of_relays_ends(
    north: Relay, relays: Callable[..., Relay], guest: ssl.SSLContext, dial: Dial
) -> None:
    north.trust(relays("south", open_port=False))
    north.start()
    admit(north, dial, "guest", "south")
    destination = {"site": "south", "host": "127.0.0.1", "port": 1}
    wanted = greeting({"circuit": {"run": RUN, "destination": destination, "hops": 8}})
    refused = dial(north.listen).secure(guest).ask(wanted)["refused"]
    assert "by 9 relays, so the way to the site south goes round in a ring" in refused["why"]
    assert not refused["may_pass"]


def test_commands_to_a_terminal_in_the_name_of_a_run_are_not_shown(
    north: Relay, guest: ssl.SSLContext, dial: Dial
) -> None:
    north.start()
    control = dial(north.listen).secure(guest)
    assert control.ask(greeting("control")) == "welcome"
    control.send(encode({"runs": [permit_of(RUN, "guest") | {"name": "ours\r\n1000 runs\x1b[2J"}]}))
    wait_until(lambda: north.status["runs"], "no run", PROMPT)
    assert [run["name"] for run in north.status["runs"]] == ["ours\ufffd\ufffd1000 runs\ufffd[2J"]


# The log, and the end


@pytest.mark.parametrize("output", ["full", "closed"])
def test_a_relay_whose_log_cannot_be_written_goes_on(north: Relay, dial: Dial, output: str) -> None:
    if output == "full":
        error = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, error = os.pipe()
        os.close(reader)
    command = [TITIN, "relay", "run", "--folder", north.folder]
    north.process = subprocess.Popen(command, stderr=error)
    os.close(error)
    wait_until(north.answers, "the relay takes no connections", PROMPT)
    for _ in range(3):
        stranger = dial(north.local)
        stranger.send(100 * b"x")
        stranger.rest()
    goes_on(north)
    assert north.process.poll() is None


def test_a_second_signal_ends_a_relay_that_drains(north: Relay, guest: ssl.SSLContext, dial: Dial) -> None:
    write_drain(north, 3600)
    with circuit_to_listener(north, guest, dial):
        assert north.process
        north.process.send_signal(signal.SIGTERM)
        has_logged(north, "the relay ends", "circuits=1")
        with pytest.raises(subprocess.TimeoutExpired):
            north.process.wait(0.5)
        north.process.send_signal(signal.SIGTERM)
        assert north.process.wait(PROMPT) == 0


# Secrets


@pytest.mark.parametrize("start", ["[env]", "by hand"])
def test_secrets_are_in_no_log_and_no_process_shows_them(sites: Sites, start: str) -> None:
    sites.write(steps=60, most=1000, pause=0.06, start=start)
    tokens: dict[str, str] = {}
    if start == "by hand":
        by_hand = sites.begin_by_hand()
        process, said = by_hand.process, by_hand.said
        key = re.search("a36b6579c420([0-9a-f]{64})", by_hand.token)
        assert key, by_hand.token
        tokens = {"token": by_hand.token, "one-time key": key[1]}
        agent = by_hand.start_agent()
    else:
        said = sites.folder / "said"
        with said.open("w") as output:
            process = sites.begin(output)
    run = sites.folder / "run"
    wait_until(lambda: sites.north.peer("south")["circuits"] >= 2, "there are no circuits")
    wait_until((run / "instances/b/stdout.txt").exists, "b has not been started")
    connection = json.loads((run / "connection.json").read_text())
    secrets = {
        "secret": connection["secret"],
        "permit": connection["site"]["permit"],
        "access of north": access(sites.north).hex(),
        "access of south": access(sites.south).hex(),
    }
    assert {len(secret) for secret in secrets.values()} == {64}
    assert not any(secrets["secret"] in token for token in tokens.values())
    shown: dict[Path, str] = {}
    while process.poll() is None:
        for number in filter(str.isdigit, os.listdir("/proc")):
            for place in (Path("/proc", number, "cmdline"), Path("/proc", number, "environ")):
                # A process may end, or belong to another user.
                with contextlib.suppress(OSError):
                    # A process that has ended, and is still there, shows nothing.
                    shown[place] = place.read_bytes().decode(errors="replace") or shown.get(place, "")
        time.sleep(0.2)
    code, out = process.wait(timeout=60), said.read_text()
    assert code == 0, out
    # The user alone sees the token, once.
    assert [out.count(token) for token in tokens.values()] == [1] * len(tokens)
    if start == "by hand":
        out = out.replace(by_hand.token, "") + agent.communicate(timeout=60)[0]
    secrets |= tokens
    for name in "ab":
        assert any(f"exchange.py\0{name}\0" in text for text in shown.values()), name
    logs = [path for path in run.rglob("*") if path.suffix in (".txt", ".log")]
    logs += [sites.north.folder / "log", sites.south.folder / "log"]
    assert run / "titin_manager.log" in logs and run / "instances/b/stdout.txt" in logs
    texts = shown | {path: path.read_text() for path in logs} | {Path("titin run"): out}
    found = [(path, name) for path, text in texts.items() for name, secret in secrets.items() if secret in text]
    assert found == []


# Seals


@pytest.mark.parametrize("encrypt", [True, False])
def test_a_relay_sees_no_message_unless_the_run_says_so(sites: Sites, encrypt: bool) -> None:
    sites.write(steps=3, most=20_000, more="" if encrypt else "  encrypt: false")
    taps = sites.tap()
    done(sites, 3, 20_000)
    for tap in taps:
        tap.close()
    # The second messages of both programs, as they compute them.
    passed = b"".join(tap.passed for tap in taps)
    for leads in (0, 1):
        rng = np.random.default_rng(7)
        _, message = (rng.integers(0, 2**63, size=size, dtype=np.int64) + leads for size in (1, 7920))
        assert len(passed) > 2 * message.nbytes
        assert (message[:100].tobytes() in passed) is not encrypt
