//! What peers have returned of the blocks that they were given ([`super::pool`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::memory::Region;
#[cfg(test)]
use crate::sync::AtomicU32 as Count;
use titin_os::Descriptor;

/// What one peer has returned: a count for each block.
#[derive(Debug)]
pub(crate) struct Returns {
    counts: Counts,
    /// The link to the peer has ended. It may still view what it was given.
    gone: AtomicBool,
    /// The peer's process, which tells when it has ended; nothing is certain where the system does not tell.
    process: Option<Descriptor>,
    /// It has ended, and holds nothing.
    dead: AtomicBool,
    /// The search for free blocks that last asked whether it has.
    asked: AtomicU64,
}

/// Where the counts stand.
#[derive(Debug)]
enum Counts {
    Shared {
        region: Arc<Region>,
        start: usize,
    },
    #[cfg(test)]
    Here(Vec<Count>),
}

impl Returns {
    /// Counts that another process keeps in this region.
    pub(crate) fn shared(
        region: Arc<Region>,
        start: usize,
        process: Option<Descriptor>,
    ) -> Arc<Self> {
        Arc::new(Returns::of(Counts::Shared { region, start }, process))
    }

    /// Counts of so many blocks in this process.
    #[cfg(test)]
    pub(super) fn here(blocks: usize, process: Option<Descriptor>) -> Arc<Self> {
        let counts = Counts::Here((0..blocks).map(|_| Count::new(0)).collect());
        Arc::new(Returns::of(counts, process))
    }

    fn of(counts: Counts, process: Option<Descriptor>) -> Self {
        Returns {
            counts,
            gone: AtomicBool::new(false),
            process,
            dead: AtomicBool::new(false),
            asked: AtomicU64::new(0),
        }
    }

    /// Says that the link to the peer has ended.
    pub(crate) fn leave(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// Counts a return, for the peer.
    pub(crate) fn add(&self, block: usize) {
        if !titin_os::descriptors::forked() {
            self.counts.add(block);
        }
    }

    /// Whether the peer has returned a block so many times, or is no more. It may hold thousands of blocks, and the system is
    /// asked whether it lives once in a search (of this number, from 1).
    pub(super) fn has(&self, block: usize, times: u32, search: u64) -> bool {
        self.counts.load(block) == times
            || if self.asked.swap(search, Ordering::Relaxed) == search {
                self.dead.load(Ordering::Relaxed)
            } else {
                self.is_dead()
            }
    }

    /// Whether the peer's process has ended.
    pub(super) fn is_dead(&self) -> bool {
        if self.dead.load(Ordering::Relaxed) || !self.gone.load(Ordering::Acquire) {
            return self.dead.load(Ordering::Relaxed);
        }
        let Some(process) = &self.process else {
            return false;
        };
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let ended = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now))
            .is_ok_and(|ready| ready > 0);
        self.dead.store(ended, Ordering::Relaxed);
        ended
    }
}

impl Counts {
    fn add(&self, block: usize) {
        match self {
            Counts::Shared { region, start } => region
                .at::<AtomicU32>(start + block * size_of::<u32>())
                .fetch_add(1, Ordering::Release),
            #[cfg(test)]
            Counts::Here(words) => words[block].fetch_add(1, Ordering::Release),
        };
    }

    fn load(&self, block: usize) -> u32 {
        match self {
            Counts::Shared { region, start } => region
                .at::<AtomicU32>(start + block * size_of::<u32>())
                .load(Ordering::Acquire),
            #[cfg(test)]
            Counts::Here(words) => words[block].load(Ordering::Acquire),
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::atomic::AtomicU64;
    use loom::thread;

    /// Two receivers of one block read it and return it; its owner writes to it again once it is free. Neither sees what
    /// is written then.
    #[test]
    fn loom_a_block_is_not_written_while_it_is_read() {
        crate::sync::check(|| {
            let memory = Arc::new(AtomicU64::new(1));
            let peers: Vec<_> = (0..2).map(|_| Returns::here(1, None)).collect();
            let readers: Vec<_> = peers
                .iter()
                .map(|returns| {
                    let (memory, returns) = (memory.clone(), returns.clone());
                    thread::spawn(move || {
                        assert_eq!(memory.load(Ordering::Relaxed), 1, "it was written over");
                        returns.counts.add(0);
                    })
                })
                .collect();
            if peers.iter().all(|returns| returns.has(0, 1, 1)) {
                memory.store(2, Ordering::Relaxed);
            }
            readers
                .into_iter()
                .for_each(|reader| reader.join().unwrap());
            assert!(
                peers.iter().all(|returns| returns.has(0, 1, 1)),
                "a return was lost"
            );
        });
    }
}
