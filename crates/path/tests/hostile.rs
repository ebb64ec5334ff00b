//! A program that has the key and follows no rule.

use std::io::{IoSlice, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use titin_path::{Key, Listener, Path, PathError, PathSettings};
use titin_testkit::{Host, Watchdog};
use titin_transport::{Link, LinkError, Outgoing};
use titin_wire::ConduitId;
use titin_wire::frame::Head;
use titin_wire::meta::{Content, Dtype, Layout, Meta, StorageOrder};
use titin_wire::path::{CONDUIT, LONGEST_TEXT, LongMessage, PART, PathControl};

const SOON: Option<Duration> = Some(Duration::from_millis(50));

/// A listener, a host that has opened a path to it by hand, and the path.
struct Hostile {
    listener: Listener,
    key: Key,
    link: Arc<Link>,
    path: Path,
    sent: u64,
    host: Host,
    _watchdog: Watchdog,
}

impl Hostile {
    fn start() -> Self {
        let watchdog = Watchdog::start();
        let key = Key::random();
        let listener = Listener::start("127.0.0.1:0", &key).unwrap();
        let host = Host::start(&key);
        let link = dial(&host, &listener);
        link.tell(&open("hostile"));
        let answer = PathControl::decode(&host.events.control());
        assert_eq!(answer, Ok(PathControl::Opened));
        Hostile {
            path: listener.accept(None).unwrap(),
            listener,
            key,
            link,
            sent: 0,
            host,
            _watchdog: watchdog,
        }
    }

    /// Sends a message of the conduit with this tag.
    fn send(&mut self, tag: u32, bytes: &[u8]) {
        send(&self.link, CONDUIT, self.sent, tag, bytes);
        self.sent += 1;
    }

    /// The path is lost with this reason, and other paths are not.
    fn expect_refusal(self, why: &str) {
        let lost = loop {
            match self.path.receive(None) {
                Err(PathError::Lost(LinkError::Malformed(why))) => break why.to_string(),
                Err(PathError::Late { .. }) | Ok(_) => {}
                Err(other) => panic!("{other}"),
            }
        };
        assert!(lost.contains(why), "{lost}");
        self.host.events.lost();
        serves(&self.listener, &self.key);
    }
}

fn dial(host: &Host, listener: &Listener) -> Arc<Link> {
    host.dial(&[listener.address()], 1);
    host.events.opened()
}

fn open(name: &str) -> Vec<u8> {
    let name = name.to_owned();
    let outage = u64::MAX;
    PathControl::Open {
        name,
        outage,
        by_relays: false,
    }
    .encode()
}

fn send(link: &Arc<Link>, conduit: ConduitId, number: u64, tag: u32, bytes: &[u8]) {
    let layout = Layout::new(Dtype::UInt8, StorageOrder::C, [bytes.len() as u64]);
    let meta = Arc::new(Meta {
        content: Content::Array(layout),
        ..Meta::default()
    });
    let head = Head {
        tag,
        ..Head::new(conduit, number, 0.0, None)
    };
    let parts = [IoSlice::new(bytes)];
    let _ = link.carrier().send(&Outgoing::new(head, &meta, &parts));
}

/// The listener serves others.
fn serves(listener: &Listener, key: &Key) {
    let here = Path::open(&[listener.address()], "good", key, &PathSettings::default()).unwrap();
    let there = listener.accept(None).unwrap();
    assert_eq!(there.name(), "good");
    here.send(b"good", None).unwrap();
    assert_eq!(&there.receive(None).unwrap().bytes[..], b"good");
}

fn head(length: u64) -> Vec<u8> {
    let layout = Layout::new(Dtype::UInt8, StorageOrder::C, [length]);
    let meta = Meta {
        content: Content::Array(layout),
        ..Meta::default()
    };
    LongMessage { length, meta }.encode()
}

#[test]
fn garbage_before_the_proof_disturbs_nobody() {
    let _watchdog = Watchdog::start();
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    let place = listener.address().to_string()[4..].to_owned();
    let strangers: Vec<TcpStream> = (0..100u8)
        .map(|byte| {
            let mut stranger = TcpStream::connect(&place).unwrap();
            let _ = stranger.write_all(&vec![byte; usize::from(byte) * 11]);
            stranger
        })
        .collect();
    serves(&listener, &key);
    drop(strangers);
}

#[test]
fn a_first_message_that_asks_for_no_path_ends_the_link() {
    let watchdog = Watchdog::start();
    let key = Key::random();
    let listener = Listener::start("127.0.0.1:0", &key).unwrap();
    for first in [
        b"garbage".to_vec(),
        PathControl::Opened.encode(),
        PathControl::Closing { received: 0 }.encode(),
        open(&"x".repeat(LONGEST_TEXT + 1)),
    ] {
        let host = Host::start(&key);
        dial(&host, &listener).tell(&first);
        host.events.lost();
        serves(&listener, &key);
    }
    drop(watchdog);
}

#[test]
fn a_second_request_on_a_link_ends_the_path() {
    let hostile = Hostile::start();
    hostile.link.tell(&open("again"));
    hostile.expect_refusal("a second one");
}

#[test]
fn a_message_of_a_conduit_that_is_not_the_paths_ends_the_path() {
    let stray = ConduitId(CONDUIT.0 + 1);
    type Step<'a> = &'a dyn Fn(&Arc<Link>);
    let steps: [Step<'_>; 3] = [
        &|link| send(link, stray, 0, 0, b"stray"),
        &|link| link.carrier().end(stray, 0),
        &|link| link.carrier().ask(stray, 0),
    ];
    for step in steps {
        let hostile = Hostile::start();
        step(&hostile.link);
        hostile.expect_refusal("has no conduit 1");
    }
}

#[test]
fn parts_that_do_not_belong_there_end_the_path() {
    let head = |length| move |hostile: &mut Hostile| hostile.send(1, &head(length));
    let part = |length: usize| move |hostile: &mut Hostile| hostile.send(2, &vec![0; length]);
    type Step<'a> = &'a dyn Fn(&mut Hostile);
    // The shortest long message.
    let long = PART + 1;
    let cases: [(&[Step<'_>], &str); 9] = [
        (&[&|hostile| hostile.send(4, b"")], "the tag 4"),
        (&[&part(9)], "does not belong"),
        (&[&|hostile| hostile.send(3, b"")], "does not belong"),
        (&[&|hostile| hostile.send(1, b"short")], "too short"),
        (&[&head(PART)], "no long message"),
        (&[&head(long), &part(0)], "does not belong"),
        (
            &[&head(long), &part(PART as usize - 1), &part(3)],
            "does not belong",
        ),
        (&[&head(long), &head(long)], "does not belong"),
        (
            &[&head(long), &|hostile| hostile.send(0, b"short")],
            "does not belong",
        ),
    ];
    for (steps, why) in cases {
        let mut hostile = Hostile::start();
        steps.iter().for_each(|step| step(&mut hostile));
        hostile.expect_refusal(why);
    }
}

#[test]
fn a_length_beyond_all_memory_is_an_error_of_the_message() {
    let mut hostile = Hostile::start();
    hostile.send(1, &head(1 << 63));
    let why = hostile.path.receive(None).unwrap_err();
    assert!(matches!(why, PathError::NoMemory(_)), "{why}");
    hostile.send(3, b"");
    hostile.send(0, b"next");
    assert_eq!(&hostile.path.receive(None).unwrap().bytes[..], b"next");
}

#[test]
fn accounts_of_dropped_messages_are_bounded() {
    let hostile = Hostile::start();
    for message in 0..100_000 {
        let why = "no room".into();
        let dropped = PathControl::Dropped { message, why };
        hostile.link.tell(&dropped.encode());
    }
    // Behind all accounts. The barrier tells of the first one.
    hostile.link.tell(&PathControl::Barrier.encode());
    let is_account = |told| matches!(told, Err(PathError::Dropped { .. }));
    assert!(is_account(hostile.path.barrier(None)));
    let told = (0..1000).filter(|_| is_account(hostile.path.flush(SOON)));
    assert_eq!(1 + told.count(), 64);
}
