//! The connections that a listener lets in, and the listeners that a dialler accepts.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Resource, getrlimit, setrlimit};
use titin_testkit::{Host, RawPeer, Relay, header, message, pattern};
use titin_transport::{InboxOptions, LinkError, Medium};
use titin_wire::connection::PATIENCE;
use titin_wire::frame::Frame;
use titin_wire::handshake::{Handshake, Purpose, Refusal};
use titin_wire::token::{AskError, Token, TokenRequest, ask};
use titin_wire::{Address, ConduitId, EndpointId, LinkSettings, Secret};

/// The number of strangers that a listener holds at once.
const PLACES: usize = 1024;

#[test]
fn another_secret_is_refused_and_said_so() {
    let host = Host::start(&Secret::random());
    let address = host.listen();
    let stranger = Host::start(&Secret::random());
    stranger.dial(&[address], 5);
    let why = stranger.events.unreachable(5);
    assert_eq!(why, LinkError::Refused(Refusal::Secret));
    assert!(why.to_string().contains("TITIN_SECRET"), "{why}");
    assert_eq!(host.events.count(), 0, "a stranger is nobody's business");
}

#[test]
fn a_token_that_no_handler_knows_is_refused() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let Address::Tcp(name, port) = host.listen() else {
        panic!("a host listens by tcp");
    };
    let token = Token {
        number: 5,
        key: secret,
        host: "box".to_owned(),
        addresses: Vec::new(),
        relay: None,
    };
    let request = TokenRequest {
        host: "box".to_owned(),
        system_name: "n2".to_owned(),
        release: "1".to_owned(),
    };
    let mut stream = TcpStream::connect((name.as_str(), port)).unwrap();
    let refused = ask(&mut stream, &token, &request).unwrap_err();
    assert!(matches!(refused, AskError::Refused(Refusal::Secret)));
    assert_eq!(host.events.count(), 0, "a stranger is nobody's business");
}

#[test]
fn garbage_is_shown_out_and_who_belongs_here_gets_in() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let address = host.listen();
    let garbage = [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        pattern(1, 100_000),
        vec![0; 64],
        [b"TITIN\r\n\0", &[9; 1000][..]].concat(),
        message(1, 0, b"no handshake", 100),
    ];
    for bytes in &garbage {
        let mut peer = RawPeer::connect(&address);
        peer.write(bytes);
        assert!(peer.drain().len() <= 64, "no more is said than a greeting");
    }
    let mut peer = RawPeer::connect(&address);
    peer.write(b"TIT");
    drop(peer);
    let friend = Host::start(&secret);
    friend.dial(&[address], 1);
    friend.events.opened();
    assert_eq!(host.events.opened().tag(), None);
    assert_eq!(
        (
            host.events.count(),
            host.conduits.inbox(ConduitId(1)).received()
        ),
        (0, 0)
    );
}

#[test]
fn thousands_of_strangers_do_not_keep_a_friend_out() {
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).unwrap();
    // Each stranger takes a descriptor here and a descriptor at the listener, and there are two
    // crowds.
    let crowd_size = files
        .current
        .map_or(2500, |most| (most as usize / 4 - 20).min(2500));
    assert!(
        crowd_size > PLACES,
        "{crowd_size} are too few: raise the limit of open files (ulimit -n)"
    );
    let secret = Secret::random();
    let host = Host::start(&secret);
    let (address, shared) = (host.listen(), host.listen_shm());
    // Some strangers write nothing, some begin a greeting, and some write a whole greeting. All
    // stay connected.
    let greeting = Handshake::dial(Secret::random(), Purpose::Data).1;
    let words = |number: usize| [&b""[..], b"TITIN", &greeting[..]][number % 3];
    let mut crowd: Vec<RawPeer> = (0..crowd_size)
        .map(|_| RawPeer::connect(&address))
        .collect();
    crowd
        .iter_mut()
        .enumerate()
        .for_each(|(number, peer)| peer.write(words(number)));
    let path = shared.to_string();
    let _neighbours: Vec<UnixStream> = (0..crowd_size)
        .map(|number| {
            let mut neighbour = UnixStream::connect(path.strip_prefix("shm:").unwrap()).unwrap();
            let _ = neighbour.write_all(words(number));
            neighbour
        })
        .collect();
    for (address, medium) in [(address, Medium::Tcp), (shared, Medium::Shm)] {
        let friend = Host::start(&secret);
        friend.dial(&[address], 1);
        assert_eq!(friend.events.opened().carrier().medium(), medium);
        host.events.opened();
    }
    assert!(crowd[0].drain().is_empty(), "it gave way");
}

#[test]
fn who_answers_late_or_hangs_up_is_dialled_again() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    // The longer the whole time is, the longer one try may take.
    let patience = Duration::from_secs(15);
    for (hung_up, ignored, streams) in [(5, 0, 1), (0, 1, 1), (2, 1, 4)] {
        let relay = Relay::start_reluctant(host.listen(), hung_up, ignored);
        let dialler = Host::start(&secret);
        let settings = LinkSettings {
            streams: Some(streams),
            ..LinkSettings::default()
        };
        dialler.dial_within(&[relay.address()], 7, settings, patience);
        assert_eq!(
            dialler.events.opened().tag(),
            Some(7),
            "{hung_up} {ignored} {streams}"
        );
        host.events.opened();
    }
}

#[test]
fn a_dial_that_comes_to_nothing_in_time_says_what_is_known() {
    let dialler = Host::start(&Secret::random());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port());
    let patience = Duration::from_millis(40);
    dialler.dial_within(
        std::slice::from_ref(&address),
        1,
        LinkSettings::default(),
        patience,
    );
    let why = dialler.events.unreachable(1);
    let Address::Tcp(_, port) = address else {
        unreachable!()
    };
    let expected =
        format!("127.0.0.1:{port}: it takes connections, but has not answered; tried for 40ms");
    assert_eq!(why, LinkError::Late(expected));
}

#[test]
fn memory_is_shared_though_the_queue_of_the_listener_was_full() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let Address::Shm(path) = host.listen_shm() else {
        unreachable!()
    };
    let real = format!("{path}.real");
    std::fs::rename(&path, &real).unwrap();
    let socket = |flags| {
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
    };
    let busy = socket(SocketFlags::CLOEXEC);
    let place = SocketAddrUnix::new(&path).unwrap();
    rustix::net::bind(&busy, &place).unwrap();
    rustix::net::listen(&busy, 0).unwrap();
    let mut waiting = Vec::new();
    while let Ok(()) = {
        waiting.push(socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK));
        rustix::net::connect(waiting.last().unwrap(), &place)
    } {}
    let friend = Host::start(&secret);
    friend.dial(&[Address::Shm(path.clone()), host.listen()], 1);
    // The events come in the order of the dials. So when the second dial has failed, the full
    // socket has been tried.
    friend.dial(&[closed()], 2);
    friend.events.unreachable(2);
    std::fs::rename(&real, &path).unwrap();
    let link = friend.events.opened();
    assert_eq!(
        (link.carrier().medium(), link.detour()),
        (Medium::Shm, None)
    );
}

#[test]
fn every_address_is_tried() {
    let secret = Secret::random();
    let (host, foreign, dialler) = (
        Host::start(&secret),
        Host::start(&Secret::random()),
        Host::start(&secret),
    );
    let refused = closed();
    let (rude, rude_thread) = greeter(b"220 mail.example ESMTP\r\n");
    let (abrupt, abrupt_thread) = greeter(b"");
    let addresses = [refused, rude, foreign.listen(), abrupt, host.listen()];
    dialler.dial(&addresses, 9);
    assert_eq!(dialler.events.opened().tag(), Some(9));
    host.events.opened();
    assert_eq!((dialler.events.count(), foreign.events.count()), (0, 0));
    rude_thread.join().unwrap();
    abrupt_thread.join().unwrap();
}

#[test]
fn an_address_at_which_another_process_of_the_run_listens_is_passed_over() {
    let secret = Secret::random();
    let [dialler, other, meant] = [(); 3].map(|()| Host::start(&secret));
    other.reactor.introduce(EndpointId(6));
    meant.reactor.introduce(EndpointId(7));
    let dial = |addresses: &[Address], tag| {
        let (settings, to) = (LinkSettings::default(), Some(EndpointId(7)));
        dialler
            .reactor
            .dial(addresses, Purpose::Data, tag, to, settings, PATIENCE)
            .unwrap();
    };
    let there = other.listen();
    for first in [there.clone(), other.listen_shm()] {
        dial(&[first, meant.listen()], 1);
        assert_eq!(dialler.events.opened().tag(), Some(1));
        meant.events.opened();
    }
    dial(&[there], 2);
    let why = dialler.events.unreachable(2).to_string();
    assert!(
        why.contains("another process of the run is at this address"),
        "{why}"
    );
    assert_eq!(other.events.count(), 0);
}

#[test]
fn the_verdict_names_every_address() {
    let dialler = Host::start(&Secret::random());
    let (rude, thread) = greeter(b"220 mail.example ESMTP\r\n");
    let addresses = [closed(), rude];
    dialler.dial(&addresses, 3);
    let why = dialler.events.unreachable(3).to_string();
    for (address, reason) in addresses.iter().zip(["refused", "not a titin"]) {
        let Address::Tcp(host, port) = address else {
            unreachable!()
        };
        assert!(
            why.contains(&format!("{host}:{port}")) && why.contains(reason),
            "{why}"
        );
    }
    thread.join().unwrap();
    let none = dialler.reactor.dial(
        &[Address::Other("ucx:1".into())],
        Purpose::Data,
        4,
        None,
        LinkSettings::default(),
        PATIENCE,
    );
    assert!(none.unwrap_err().to_string().contains("ucx:1"));
}

#[test]
fn frames_may_come_right_behind_the_handshake() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    // The bytes exceed the buffer for greetings, and the last message is large.
    let bodies: Vec<_> = (0..20)
        .map(|sequence| pattern(sequence, 500 * sequence as usize))
        .collect();
    let mut behind: Vec<u8> = bodies
        .iter()
        .zip(0..)
        .flat_map(|(body, sequence)| message(1, sequence, body, 4000))
        .collect();
    behind.extend(message(1, 20, &pattern(20, 300_000), 100_000));
    behind.extend(header(&Frame::End {
        conduit: ConduitId(1),
        sequence: 21,
    }));
    let peer = RawPeer::enter(&host.listen(), &secret, &behind, RawPeer::write);
    let inlet = receive(&host);
    inlet.wait(|inbox| inbox.ended());
    for body in bodies.iter().chain([&pattern(20, 300_000)]) {
        assert!(inlet.receive().body[..] == body[..]);
    }
    drop(peer);
}

#[test]
fn bytes_may_come_one_at_a_time() {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let behind = [message(1, 0, &pattern(0, 300), 70), message(1, 1, b"", 1)].concat();
    let mut peer = RawPeer::enter(&host.listen(), &secret, &behind, RawPeer::write_slowly);
    peer.write_slowly(&message(1, 2, &pattern(2, 200), 200));
    let inlet = receive(&host);
    for (sequence, length) in [(0, 300), (1, 0), (2, 200)] {
        let message = inlet.receive();
        assert_eq!(
            (message.head.sequence, message.body.len()),
            (sequence, length)
        );
        assert!(length == 0 || message.body[..] == pattern(sequence, length));
    }
}

fn receive(host: &Host) -> titin_testkit::Inlet {
    let side = titin_testkit::PairEnd::of(host);
    side.inlet(1, InboxOptions::default())
}

/// An address at which no process listens.
fn closed() -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Address::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port())
}

/// Starts a listener that is not titin. The listener writes these words and hangs up.
fn greeter(words: &'static [u8]) -> (Address, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(words).unwrap();
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let _ = socket.read_to_end(&mut Vec::new());
    });
    (Address::Tcp("127.0.0.1".into(), port), thread)
}
