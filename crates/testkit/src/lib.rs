//! What tests of titin share: the [conformance](conformance!) suite that every medium must pass, a [`Pair`] of ends to
//! run it on, a [`Host`] for tests of tcp alone and a [`RawPeer`] that speaks it by hand and wrongly, and a [`Watchdog`]
//! against hangs.
//!
//! For development only: nothing that is shipped depends on it.
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
