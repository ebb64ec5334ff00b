//! Measures the time that a message takes between two processes over tcp, and the time over a plain
//! socket in the same run.
//!
//! The time of a message runs from the call of `send` until the other process has taken the
//! message. For most sizes it is half the time of a message there and back. The large message is
//! answered by an empty message. The payload is written anew each time, and the receiver does not
//! read the payload.
//!
//!     cargo run --release -p titin-testkit --example link -- [pairs [bytes [streams [MB/s]]]]

use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use titin_testkit::{Host, Inlet, Outlet, PairEnd};
use titin_transport::InboxOptions;
use titin_wire::{Address, LinkSettings, Secret};

const LARGE: usize = 64 << 20;
const SIZES: [(usize, u32); 5] = [
    (0, 2000),
    (1 << 10, 2000),
    (64 << 10, 500),
    (1 << 20, 50),
    (LARGE, 3),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "answer") {
        return answer();
    }
    let mut numbers = words.iter().map(|word| word.parse().expect("a number"));
    let (pairs, only) = (
        numbers.next().unwrap_or(15),
        numbers.next().filter(|size| *size > 0),
    );
    measure(
        pairs,
        only,
        [numbers.next(), numbers.next()].map(Option::unwrap_or_default),
    );
}

fn measure(pairs: usize, only: Option<usize>, [streams, pacing]: [usize; 2]) {
    let secret = Secret::random();
    let host = Host::start(&secret);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let program = std::env::current_exe().expect("a path");
    let mut child = Command::new(program)
        .arg("answer")
        .stdin(Stdio::piped())
        .spawn()
        .expect("another process");
    let mut orders = child.stdin.take().expect("piped");
    let port = listener.local_addr().expect("bound").port();
    write!(
        orders,
        "{}\n{}\n{port}\n{streams}\n{pacing}\n",
        secret.reveal(),
        host.listen()
    )
    .expect("the other process reads");
    let mut titin = Titin::new(PairEnd::from(host), 1, 2);
    let mut plain = Plain(listener.accept().expect("the other process").0);
    plain.0.set_nodelay(true).expect("a socket option");

    println!(
        "medians of {pairs}, in µs\n{:>10} {:>10} {:>10} {:>7}",
        "bytes", "titin", "socket", "ratio"
    );
    let mut payload = vec![1u8; LARGE];
    let mut room = vec![1u8; LARGE];
    for (size, times) in SIZES
        .into_iter()
        .filter(|(size, _)| only.is_none_or(|only| only == *size))
    {
        let mut figures: [Vec<f64>; 2] = Default::default();
        for _ in 0..pairs {
            figures[0].push(time(&mut titin, &mut payload[..size], &mut room, times));
            figures[1].push(time(&mut plain, &mut payload[..size], &mut room, times));
        }
        let [ours, theirs] = figures.map(median);
        println!(
            "{size:>10} {ours:>10.1} {theirs:>10.1} {:>7.2}",
            ours / theirs
        );
    }
    drop((titin, plain));
    child.wait().expect("the other process ends");
}

/// The other process. It answers each message with a message of the same size, and a large message
/// with an empty message.
fn answer() {
    let mut lines = BufReader::new(std::io::stdin())
        .lines()
        .map(|line| line.expect("an order"));
    let mut next = || lines.next().expect("an order");
    let host = Host::start(&next().parse().expect("a secret"));
    let address = Address::from(next());
    let mut number = || next().parse::<u64>().expect("a number");
    let (port, streams, pacing) = (number() as u16, number() as u32, number());
    let some = |number| Some(number).filter(|number| *number > 0);
    let streams = some(streams.into()).map(|streams| streams as u32);
    host.dial_with(
        &[address],
        1,
        LinkSettings {
            streams,
            pacing: some(pacing * 1_000_000),
            ..Default::default()
        },
    );
    let plain = TcpStream::connect(("127.0.0.1", port)).expect("the other process");
    plain.set_nodelay(true).expect("a socket option");
    std::thread::spawn(move || serve(Plain(plain)));
    let side = PairEnd::from(host);
    let (host, _) = side.tcp.as_ref().expect("over tcp");
    let events = host.events.clone();
    std::thread::spawn(move || serve(Titin::new(side, 2, 1)));
    events.lost();
}

fn serve(mut way: impl Way) {
    let mut room = vec![0u8; LARGE];
    let payload = vec![2u8; LARGE];
    while let Some(size) = way.take(&mut room) {
        way.send(&payload[..if size < LARGE { size } else { 0 }]);
    }
}

/// The mean time of one way, in microseconds.
fn time(way: &mut impl Way, payload: &mut [u8], room: &mut [u8], times: u32) -> f64 {
    let mut spent = Duration::ZERO;
    for round in 0..times {
        payload.fill(round as u8);
        let start = Instant::now();
        way.send(payload);
        way.take(room).expect("an answer");
        spent += start.elapsed();
    }
    let ways = if payload.len() < LARGE { 2.0 } else { 1.0 };
    spent.as_secs_f64() * 1e6 / f64::from(times) / ways
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

trait Way {
    fn send(&mut self, payload: &[u8]);
    /// The length of the message that has come, or `None` if no further message will come.
    fn take(&mut self, room: &mut [u8]) -> Option<usize>;
}

struct Titin {
    outlet: Outlet,
    inlet: Inlet,
    _side: PairEnd,
}

impl Titin {
    fn new(side: PairEnd, out: u32, back: u32) -> Self {
        let options = InboxOptions::default();
        Titin {
            outlet: side.outlet(out, options),
            inlet: side.inlet(back, options),
            _side: side,
        }
    }
}

impl Way for Titin {
    fn send(&mut self, payload: &[u8]) {
        self.outlet.send(payload);
    }

    fn take(&mut self, _: &mut [u8]) -> Option<usize> {
        Some(self.inlet.receive().body.len())
    }
}

struct Plain(TcpStream);

impl Way for Plain {
    fn send(&mut self, payload: &[u8]) {
        let length = (payload.len() as u64).to_le_bytes();
        let sent = self
            .0
            .write_vectored(&[IoSlice::new(&length), IoSlice::new(payload)])
            .expect("a write");
        self.0
            .write_all(&payload[sent.saturating_sub(8)..])
            .expect("a write");
    }

    fn take(&mut self, room: &mut [u8]) -> Option<usize> {
        let mut length = [0; 8];
        self.0.read_exact(&mut length).ok()?;
        let length = u64::from_le_bytes(length) as usize;
        self.0.read_exact(&mut room[..length]).ok()?;
        Some(length)
    }
}
