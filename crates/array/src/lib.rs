//! Distributed arrays: decompositions over ranks, schedules of messages, packing and unpacking.
//!
//! A [`Decomposition`] spreads an array over the ranks of an instance. Two decompositions, each
//! with a coupled region, make an [`Exchange`]. From an exchange each rank derives a [`Schedule`]:
//! the partners, and the elements in the message of each. A schedule packs and unpacks messages; a
//! [`LocalLayout`] is the layout of the elements in memory, with halos and strides.
//!
//! Between two regular decompositions every rank derives the schedule alone. If the sender is
//! irregular, ranks enter their elements in a directory ([`Register`], [`Directory`]). [`Bytes`] is
//! the form of all messages about that.
//!
//! This crate has no input or output, no threads and no clock. It never makes a link, and knows no
//! element types.
//!
//! ```
//! use titin_array::{Decomposition, Exchange, LocalLayout, Order, Ownership, Role, Side, SourceArray, TargetArray};
//!
//! // Two ranks have the rows of a 4 × 6 array, three ranks want its columns.
//! let rows = Decomposition::block(&[4, 6], &[2, 1])?;
//! let columns = Decomposition::block(&[4, 6], &[1, 3])?;
//! let exchange = Exchange::new(Side::new(rows.clone()), Side::new(columns.clone()))?;
//!
//! // Rank 1 of the sender has rows 2 and 3. The message for rank 0 of the receiver has the first
//! // two columns of these rows.
//! let sending = exchange.schedule(Role::Sender, 1)?;
//! let partners: Vec<u32> = sending.partners().map(|partner| partner.rank).collect();
//! assert_eq!(partners, [0, 1, 2]);
//! let memory: Vec<u8> = (12..24).collect();
//! let local = LocalLayout::dense(&rows, 1, &Ownership::Rule, None, Order::C)?;
//! let mut message = vec![0; sending.bytes(0, [1]) as usize];
//! sending.pack(0, &[SourceArray { memory: &memory, local: &local, size: 1 }], 0, &mut message)?;
//! assert_eq!(message, [12, 13, 18, 19]);
//!
//! // The message becomes the lower half of a 4 × 2 array.
//! let receiving = exchange.schedule(Role::Receiver, 0)?;
//! let local = LocalLayout::dense(&columns, 0, &Ownership::Rule, None, Order::C)?;
//! let mut memory = vec![0; 8];
//! let from = receiving.find(1).unwrap();
//! let target = TargetArray { memory: &mut memory, local: &local, size: 1 };
//! receiving.unpack(from, 0, &message, &mut [target])?;
//! assert_eq!(memory, [0, 0, 0, 0, 12, 13, 18, 19]);
//! # Ok::<(), titin_array::Error>(())
//! ```

#![forbid(unsafe_code)]

mod all_ranks;
mod box_schedule;
mod box_tree;
mod bytes;
mod copy_kernel;
mod copy_plan;
mod decomposition;
mod dims;
mod directory;
mod directory_entries;
mod directory_map;
mod directory_messages;
mod error;
mod exchange;
mod footprint;
mod hilbert;
mod index_schedule;
mod invalid;
mod local_layout;
mod order;
mod owned_ranges;
mod ownership;
mod pack;
mod partner;
mod partner_grid;
mod partner_list;
mod prepared;
mod region;
mod schedule;
mod scheduling;
mod side;
mod spread;
mod strided_indices;

pub use bytes::Bytes;
pub use copy_kernel::CopyBytes;
pub use decomposition::Decomposition;
pub use dims::{Dims, MOST_DIMS, MOST_ELEMENTS};
pub use directory::{Directory, Register};
pub use directory_map::DirectoryMap;
pub use directory_messages::{DirectoryAnswer, DirectoryEntries, ElementRequest, OwnedBox};
pub use error::{Error, Gap, Overlap};
pub use exchange::{Exchange, Role};
pub use footprint::Footprint;
pub use invalid::Invalid;
pub use local_layout::{Halo, LocalLayout};
pub use order::Order;
pub use ownership::{IndexRange, Ownership};
pub use pack::{SourceArray, TargetArray, copy};
pub use partner::Partner;
pub use prepared::PreparedMessage;
pub use region::Region;
pub use schedule::Schedule;
pub use side::Side;
pub use spread::Spread;
