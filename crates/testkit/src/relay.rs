//! A relay between two hosts, which can cut connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::net::sockopt;

use titin_wire::Address;

/// The first bytes that a relay keeps for [`Relay::has_seen`].
const KEPT: usize = 1 << 20;

/// Passes the bytes of each connection on to another address, in both directions.
pub struct Relay {
    address: Address,
    connections: Arc<Mutex<Vec<[TcpStream; 2]>>>,
    admitted: Arc<AtomicUsize>,
    line: Arc<LineState>,
}

/// What the threads of a relay share.
#[derive(Default)]
struct LineState {
    /// Whether the line is cut: new connections are reset.
    is_cut: AtomicBool,
    /// How often all connections have been reset.
    resets: AtomicUsize,
    seen: Mutex<Vec<u8>>,
}

impl Relay {
    /// Passes on to this address.
    pub fn start(to: Address) -> Self {
        Self::start_reluctant(to, 0, 0)
    }

    /// Passes on to this address. Before that the relay hangs up on the first `hung_up`
    /// connections, and accepts the next `ignored` connections without an answer.
    pub fn start_reluctant(to: Address, hung_up: usize, ignored: usize) -> Self {
        let Address::Tcp(host, port) = to else {
            panic!("{to} is not of tcp")
        };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let here = listener.local_addr().expect("bound");
        let connections: Arc<Mutex<Vec<[TcpStream; 2]>>> = Arc::default();
        let admitted = Arc::new(AtomicUsize::new(usize::MAX));
        let line: Arc<LineState> = Arc::default();
        let (known, limit, shared) = (connections.clone(), admitted.clone(), line.clone());
        // The thread ends with the process. No connection comes once the test is over.
        std::thread::spawn(move || {
            let accept = |_| listener.accept().expect("it listens").0;
            (0..hung_up).map(accept).for_each(drop);
            let _ignored: Vec<TcpStream> = (0..ignored).map(accept).collect();
            for near in listener.incoming().map_while(Result::ok) {
                let mut known = known.lock().expect("never poisoned");
                if known.len() >= limit.load(Ordering::SeqCst) {
                    break;
                }
                if shared.is_cut.load(Ordering::SeqCst) {
                    reset(&near);
                    continue;
                }
                let far = TcpStream::connect((host.as_str(), port)).expect("somebody listens");
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone(), to.try_clone());
                    let (from, to) = (from.expect("a descriptor"), to.expect("a descriptor"));
                    let line = shared.clone();
                    let resets = line.resets.load(Ordering::SeqCst);
                    std::thread::spawn(move || pass(from, to, &line, resets));
                }
                known.push([near, far]);
            }
        });
        Relay {
            address: Address::Tcp(here.ip().to_string(), here.port()),
            connections,
            admitted,
            line,
        }
    }

    /// The address at which the relay listens.
    pub fn address(&self) -> Address {
        self.address.clone()
    }

    /// Lets only `count` connections through. The relay hangs up on the next connection, and
    /// listens no more.
    pub fn admit(&self, count: usize) {
        self.admitted.store(count, Ordering::SeqCst);
    }

    /// Resets all connections, as a line does that has lost them. New ones are reset too, until
    /// [`Relay::mend`].
    pub fn break_line(&self) {
        self.line.is_cut.store(true, Ordering::SeqCst);
        self.reset_all();
    }

    /// Lets new connections through again.
    pub fn mend(&self) {
        self.line.is_cut.store(false, Ordering::SeqCst);
    }

    /// Resets all connections. Returns how many there were.
    pub fn reset_all(&self) -> usize {
        let mut connections = self.connections.lock().expect("never poisoned");
        let broken = std::mem::take(&mut *connections);
        self.line.resets.fetch_add(1, Ordering::SeqCst);
        broken.iter().flatten().for_each(reset);
        broken.len()
    }

    /// Whether these bytes were among the first of any connection.
    pub fn has_seen(&self, bytes: &[u8]) -> bool {
        let seen = self.line.seen.lock().expect("never poisoned");
        seen.windows(bytes.len()).any(|window| window == bytes)
    }

    /// Cuts the connection with this number. Connections are counted in the order in which they
    /// were made.
    pub fn cut(&self, number: usize) {
        self.connections.lock().expect("never poisoned")[number]
            .iter()
            .for_each(cut);
    }

    /// Cuts all connections, the first one first.
    pub fn cut_all(&self) {
        self.connections
            .lock()
            .expect("never poisoned")
            .iter()
            .flatten()
            .for_each(cut);
    }
}

fn cut(socket: &TcpStream) {
    let _ = socket.shutdown(Shutdown::Both);
}

/// Has the end of the last copy of a socket tell the other end by a reset, and the threads that read the socket end.
fn reset(socket: &TcpStream) {
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
    let _ = socket.shutdown(Shutdown::Read);
}

/// Passes the bytes of one direction on, and then its end, unless the line has been reset since the connection was made.
fn pass(mut from: TcpStream, mut to: TcpStream, line: &LineState, resets: usize) {
    let mut bytes = [0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let mut seen = line.seen.lock().expect("never poisoned");
        let room = KEPT.saturating_sub(seen.len());
        seen.extend_from_slice(&bytes[..count.min(room)]);
        drop(seen);
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    if line.resets.load(Ordering::SeqCst) == resets {
        let _ = to.shutdown(Shutdown::Write);
    }
}
