//! The counts of blocks returned by peers ([`super::pool`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::buffer::PeerBlocks;
use crate::shared_memory::SharedRegion;
#[cfg(test)]
use crate::sync::AtomicU32 as Count;
use titin_os::Descriptor;

/// The returns of one peer: a count for each block.
#[derive(Debug)]
pub(crate) struct Returns {
    counts: Counts,
    /// The link to the peer has ended. The peer may still view blocks.
    gone: AtomicBool,
    /// The peer's process. If `None`, the end of the process is never certain.
    process: Option<Descriptor>,
    /// The peer's process has ended, and holds no blocks.
    dead: AtomicBool,
    /// The search for free blocks that last checked for the end of the process.
    checked: AtomicU64,
}

/// The memory of the counts.
#[derive(Debug)]
enum Counts {
    Shared {
        region: Arc<SharedRegion>,
        start: usize,
    },
    #[cfg(test)]
    Here(Vec<Count>),
}

impl Returns {
    /// Counts in `region`, a region mapped by both processes.
    pub(crate) fn shared(
        region: Arc<SharedRegion>,
        start: usize,
        process: Option<Descriptor>,
    ) -> Arc<Self> {
        Arc::new(Returns::of(Counts::Shared { region, start }, process))
    }

    /// Counts of `blocks` blocks in private memory.
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
            checked: AtomicU64::new(0),
        }
    }

    /// Notes the end of the link to the peer.
    pub(crate) fn leave(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// Counts a return. The receiver of a block calls `add`; for a block that no receiver saw, the
    /// owner does.
    pub(crate) fn add(&self, block: usize) {
        if !titin_os::descriptors::forked() {
            self.counts.add(block);
        }
    }

    /// Whether the peer has returned a block `times` times, or has ended. The peer may hold
    /// thousands of blocks, so one search (numbered `search`, from 1) asks the system once whether
    /// the peer lives.
    pub(super) fn has(&self, block: usize, times: u32, search: u64) -> bool {
        self.counts.load(block) == times
            || if self.checked.swap(search, Ordering::Relaxed) == search {
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

impl PeerBlocks for Returns {
    fn give_back(&self, block: usize) {
        self.add(block);
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

    /// Two receivers read one block and return it. The owner writes to the block once it is free.
    /// Neither receiver sees the new bytes.
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
