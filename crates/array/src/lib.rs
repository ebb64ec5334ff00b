//! Distributed arrays: who owns which part, who sends what to whom, and how it gets from memory to memory.
//!
//! An array is spread over the ranks of an instance by a [`Decomposition`]. Two of them, each with the region of it that is coupled,
//! make an [`Exchange`]. From that each rank has its [`Schedule`]: its partners, and what goes into the message of each. A schedule
//! packs messages from memory and unpacks them there; a [`Local`] says how the rank holds its elements, with halos and strides.
//!
//! Between two regular decompositions every rank finds its schedule alone. Where the sender's is irregular, ranks tell a directory
//! what they own ([`Register`], [`Directory`]); what travels for that has a form in [`Bytes`].
//!
//! This crate has no input or output, no threads and no clock. It never makes a link, and never knows what an element means.
//!
//! ```
//! use titin_array::{Decomposition, Exchange, Local, Order, Parts, Role, Side, Source, Target};
//!
//! // Two ranks have the rows of a 4 × 6 array, three ranks want its columns.
//! let (rows, columns) = (Decomposition::block(&[4, 6], &[2, 1])?, Decomposition::block(&[4, 6], &[1, 3])?);
//! let exchange = Exchange::new(Side::new(rows.clone()), Side::new(columns.clone()))?;
//!
//! // Rank 1 of the sender has rows 2 and 3. Its message for rank 0 of the receiver has the first two columns of them.
//! let sending = exchange.schedule(Role::Sender, 1)?;
//! assert_eq!(sending.partners().map(|partner| partner.rank).collect::<Vec<_>>(), [0, 1, 2]);
//! let (memory, local) = ((12..24).collect::<Vec<u8>>(), Local::dense(&rows, 1, &Parts::Rule, None, Order::C)?);
//! let mut message = vec![0; sending.bytes(0, [1]) as usize];
//! sending.pack(0, &[Source { memory: &memory, local: &local, size: 1 }], 0, &mut message)?;
//! assert_eq!(message, [12, 13, 18, 19]);
//!
//! // There it becomes the lower half of a 4 × 2 array.
//! let receiving = exchange.schedule(Role::Receiver, 0)?;
//! let local = Local::dense(&columns, 0, &Parts::Rule, None, Order::C)?;
//! let mut memory = vec![0; 8];
//! let from = receiving.find(1).unwrap();
//! receiving.unpack(from, 0, &message, &mut [Target { memory: &mut memory, local: &local, size: 1 }])?;
//! assert_eq!(memory, [0, 0, 0, 0, 12, 13, 18, 19]);
//! # Ok::<(), titin_array::Error>(())
//! ```

#![forbid(unsafe_code)]

mod all;
mod boxes;
mod bytes;
mod comb;
mod curve;
mod decomposition;
mod dims;
mod directory;
mod error;
mod exchange;
mod kernel;
mod list;
mod local;
mod map;
mod numbers;
mod order;
mod pack;
mod parts;
mod plan;
mod product;
mod region;
mod schedule;
mod spread;
mod tree;
mod wants;

pub use bytes::Bytes;
pub use decomposition::Decomposition;
pub use dims::{Dims, MOST_DIMS, MOST_ELEMENTS};
pub use directory::{Directory, Register};
pub use error::{Error, Gap, Overlap};
pub use exchange::{Exchange, Role, Side};
pub use kernel::CopyBytes;
pub use local::{Halo, Local};
pub use map::Map;
pub use order::Order;
pub use pack::{Source, Target, copy};
pub use parts::{Parts, Run};
pub use region::Region;
pub use schedule::{Partner, Schedule};
pub use spread::Spread;
pub use wants::{Answer, Entries, OwnedBox, Wants};
