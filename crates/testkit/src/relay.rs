//! A relay between two hosts, which can cut connections.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use titin_wire::Address;

/// Passes the bytes of each connection on to another address, in both directions.
pub struct Relay {
    address: Address,
    connections: Arc<Mutex<Vec<[TcpStream; 2]>>>,
    admitted: Arc<AtomicUsize>,
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
        let (known, limit) = (connections.clone(), admitted.clone());
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
                let far = TcpStream::connect((host.as_str(), port)).expect("somebody listens");
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone(), to.try_clone());
                    let (from, to) = (from.expect("a descriptor"), to.expect("a descriptor"));
                    std::thread::spawn(move || pass(from, to));
                }
                known.push([near, far]);
            }
        });
        Relay {
            address: Address::Tcp(here.ip().to_string(), here.port()),
            connections,
            admitted,
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

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
