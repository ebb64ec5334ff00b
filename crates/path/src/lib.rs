//! Paths: messages between two programs that share a key, without a manager.
//!
//! One program [listens](Listener), the other one [opens](Path::open) a path. Both prove that they know the key.
//! A message knows its size and its elements. A path keeps the order of messages, and carries them
//! both ways at once.
//!
//! ```
//! use titin_path::{Key, Listener, Path, PathSettings};
//!
//! let (key, settings) = (Key::random(), PathSettings::default());
//! let listener = Listener::start("127.0.0.1:0", &key).unwrap();
//! let here = Path::open(&[listener.address()], "mesh", &key, &settings).unwrap();
//! let there = listener.accept(None).unwrap();
//! here.send(b"four", None).unwrap();
//! assert_eq!(&there.receive(None).unwrap().bytes[..], b"four");
//! ```

#![forbid(unsafe_code)]

mod address;
mod barrier;
mod context;
mod cycle;
mod end;
mod error;
mod interrupt;
mod key_file;
mod lane;
mod listener;
mod memory;
mod path;
mod reached_sites;
mod receive;
mod relay;
mod request;
mod send;
mod settings;
mod statistics;
mod time_limit;
mod worker;

pub use address::parse_addresses;
pub use error::{PathError, Result};
pub use interrupt::Interrupt;
pub use key_file::{KEY_VARIABLE, make_key, read_key, usual_key};
pub use listener::Listener;
pub use memory::{ReceiveMemory, SendMemory};
pub use path::Path;
pub use receive::ReceivedMessage;
pub use request::{Request, wait_any};
pub use settings::PathSettings;
pub use statistics::PathStatistics;
pub use titin_transport::PIECE_SIZES;
pub use titin_wire::Secret as Key;
pub use titin_wire::frame::MAX_STREAMS as MOST_STREAMS;
