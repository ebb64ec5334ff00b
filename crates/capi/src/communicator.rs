//! The ranks of a parallel program, by the program's communicator.

use std::ffi::{c_int, c_void};

use titin_runtime::{Error, Kind, Result};

use crate::error::usage;
use crate::pointer::Pointer;

/// The `titin_communicator` of the header.
#[repr(C)]
pub struct RawCommunicator {
    size: usize,
    rank: c_int,
    ranks: c_int,
    context: *mut c_void,
    broadcast: Option<Broadcast>,
    gather: Option<Gather>,
}

type Broadcast = unsafe extern "C" fn(*mut c_void, *mut c_void, i64) -> c_int;
type Gather = unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void, i64) -> c_int;

/// A checked communicator.
#[derive(Clone, Copy)]
pub(crate) struct Communicator {
    rank: u32,
    ranks: u32,
    context: Pointer,
    broadcast: Broadcast,
    gather: Gather,
}

impl Communicator {
    pub(crate) fn new(given: &RawCommunicator) -> Result<Self> {
        if given.size != size_of::<RawCommunicator>() {
            let text = format!(
                "titin_communicator: size is {}, expected {}: set it to sizeof(titin_communicator)",
                given.size,
                size_of::<RawCommunicator>()
            );
            return Err(usage(text));
        }
        let (Some(broadcast), Some(gather)) = (given.broadcast, given.gather) else {
            return Err(usage(
                "titin_communicator: broadcast and gather must both be given, and one is NULL",
            ));
        };
        let place = u32::try_from(given.rank)
            .ok()
            .zip(u32::try_from(given.ranks).ok());
        let Some((rank, ranks)) = place.filter(|(rank, ranks)| rank < ranks) else {
            let (rank, ranks) = (given.rank, given.ranks);
            return Err(usage(format!(
                "titin_communicator: rank {rank} of {ranks} ranks; ranks count from 0"
            )));
        };
        Ok(Communicator {
            rank,
            ranks,
            context: Pointer(given.context),
            broadcast,
            gather,
        })
    }
}

impl titin_runtime::Communicator for Communicator {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn broadcast(&self, bytes: &mut [u8]) -> Result<()> {
        // SAFETY: the function may be called while the instance is opened, as the caller promises;
        // the bytes may be written.
        let status = unsafe {
            (self.broadcast)(
                self.context.raw(),
                bytes.as_mut_ptr().cast(),
                bytes.len() as i64,
            )
        };
        outcome("broadcast", status)
    }

    fn gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
        let (mine, count, all) = (
            mine.as_ptr().cast(),
            mine.len() as i64,
            all.as_mut_ptr().cast(),
        );
        // SAFETY: as above. `all` is written only at rank 0, and has room there for the bytes of
        // all ranks.
        outcome("gather", unsafe {
            (self.gather)(self.context.raw(), mine, all, count)
        })
    }
}

fn outcome(call: &str, status: c_int) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    let text = format!("{call} of the program's communicator has failed with {status}");
    Err(Error::new(Kind::Connection, text))
}
