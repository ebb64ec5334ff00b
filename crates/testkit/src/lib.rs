//! The common parts of titin's tests: the [conformance](conformance!) suite that every medium must
//! pass, a [`Pair`] of ends to run the suite on, a [`Host`] for tests of one medium, a [`RawPeer`]
//! that writes the bytes of tcp by hand and can write wrong bytes, and a [`Watchdog`] against
//! hangs.
//!
//! For development only: nothing that is shipped depends on this crate.
//!
//! ```
//! use titin_testkit::{Pair, pattern};
//!
//! let pair = Pair::inproc();
//! let (outlet, inlet) = pair.conduit(1);
//! outlet.send(&pattern(0, 100));
//! assert_eq!(&inlet.receive().body[..], &pattern(0, 100)[..]);
//! ```

#![forbid(unsafe_code)]

pub mod conformance;
mod events;
pub mod fuzz;
mod host;
mod pair;
mod part;
mod peer;
mod relay;
mod watchdog;

pub use events::{Events, LinkEvent};
pub use host::Host;
pub use pair::{Inlet, Outlet, Pair, PairEnd, Stall, pattern, until};
pub use part::{play_part, start_part, start_part_of};
pub use peer::{RawPeer, header, message, striped};
pub use relay::Relay;
pub use watchdog::{Watchdog, progress};
