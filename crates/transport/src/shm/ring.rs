//! Entries in shared memory from one producer to one consumer.
//!
//! The ring is made of lines of 64 bytes. An entry takes whole lines, one after the other; its first word is written
//! last, and tells that it is there. So a small entry crosses from one core to the other as one line, and one that was
//! not finished, since its producer died, is never seen. Before an entry shows, the producer sets the first word behind it
//! to zero: whatever stood there in the last round, the consumer finds nothing there until the next entry is finished. So
//! lines are written by one side only, and go to the other one to be read.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use titin_wire::{Malformed, padded};

use super::memory::{Memory, Region, Word};

/// How far a consumer has come.
pub(crate) type Shown = crate::sync::AtomicU64;

/// Bytes of a line, and of an entry's header.
pub(crate) const LINE: usize = 64;

/// Where in a region the words stand, each in a line of its own, and where the entries begin.
const HEAD: usize = 0;
const ASLEEP: usize = LINE;
const WANTS_ROOM: usize = 2 * LINE;
pub(crate) const ENTRIES: usize = 64 * LINE;

/// Kind of the entry that fills the lines up to the end, where the next one does not fit.
const FILLER: u64 = 0xff;

/// The end that puts entries in. One thread at a time.
#[derive(Debug)]
pub(crate) struct Producer<M = Region> {
    region: Arc<M>,
    capacity: u64,
    /// Bytes put in since the beginning.
    tail: u64,
    /// Bytes that the consumer had read when we last looked.
    head: u64,
}

/// The end that takes entries out. One thread at a time.
#[derive(Debug)]
pub(crate) struct Consumer<M = Region> {
    region: Arc<M>,
    capacity: u64,
    head: u64,
    /// The same, for those who only look whether something waits.
    shown: Arc<Shown>,
    /// Where we last looked whether the producer wants room.
    looked: u64,
}

/// An entry's header, and what follows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) header: [u8; LINE],
    at: usize,
}

/// Bytes of a region that holds a ring of this capacity, which is a power of two, and several lines.
pub(crate) fn length(capacity: usize) -> usize {
    ENTRIES + capacity
}

/// Where in a ring of this capacity, a power of two, stands what comes behind so many bytes.
fn offset(bytes: u64, capacity: u64) -> u64 {
    bytes & (capacity - 1)
}

/// What an entry with so much behind its header takes.
pub(crate) fn size(meta: usize, body: usize) -> usize {
    LINE + meta + padded(body)
}

impl<M: Memory> Producer<M> {
    pub(crate) fn new(region: Arc<M>, capacity: usize) -> Self {
        Producer {
            region,
            capacity: capacity as u64,
            tail: 0,
            head: 0,
        }
    }

    /// Bytes put in since the beginning.
    pub(crate) fn tail(&self) -> u64 {
        self.tail
    }

    /// Bytes that the consumer has read since the beginning, as far as it is to be believed.
    pub(crate) fn read(&mut self) -> u64 {
        // Behind a wish for room this is to see what a consumer that did not see the wish has shown.
        let head = self.region.word(HEAD).load(Ordering::SeqCst);
        if head <= self.tail && head >= self.head {
            self.head = head;
        }
        self.head
    }

    /// Puts an entry in: a header, whose first byte is not zero, metadata that fill whole lines, and a body in parts.
    /// False if there is no room.
    #[inline(always)]
    pub(crate) fn push(&mut self, header: &[u8; LINE], meta: &[u8], body: &[IoSlice<'_>]) -> bool {
        let length = body.iter().map(|part| part.len()).sum();
        let size = size(meta.len(), length) as u64;
        let at = offset(self.tail, self.capacity);
        let filler = if at + size > self.capacity {
            self.capacity - at
        } else {
            0
        };
        let next = self.tail + filler + size;
        // The line behind it is written as well.
        let end = next + LINE as u64;
        if end - self.head > self.capacity && end - self.read() > self.capacity {
            return false;
        }
        self.word(offset(next, self.capacity))
            .store(0, Ordering::Release);
        let begin = if filler > 0 { 0 } else { at };
        let mut place = ENTRIES + begin as usize;
        self.region.write(place + 8, &header[8..]);
        place += LINE;
        if !meta.is_empty() {
            self.region.write(place, meta);
            place += meta.len();
        }
        for part in body {
            self.region.write(place, part);
            place += part.len();
        }
        let first = u64::from_le_bytes(*header.first_chunk().expect("longer"));
        if filler > 0 {
            self.word(begin).store(first, Ordering::Release);
        }
        self.word(at)
            .publish(if filler > 0 { FILLER } else { first });
        self.tail = next;
        // Most entries are as large as those before: the lines of the next one are here by then.
        for line in (0..size).step_by(LINE) {
            self.region
                .fetch(ENTRIES + offset(end + line, self.capacity) as usize);
        }
        true
    }

    /// The bells that are to be rung, since somebody sleeps there. To be asked after each entry.
    pub(crate) fn sleepers(&self) -> u64 {
        let asleep = self.region.word(ASLEEP);
        if asleep.load(Ordering::SeqCst) == 0 {
            0
        } else {
            asleep.swap(0, Ordering::SeqCst)
        }
    }

    /// Takes back the entry that ends there and that only one of us may use, unless the consumer has it. True if it does not,
    /// and will not.
    pub(crate) fn take_back(&mut self, end: u64) -> bool {
        self.read() < end
            && self
                .word(offset(end - LINE as u64, self.capacity))
                .swap(1, Ordering::SeqCst)
                == 0
    }

    /// Asks to be told once there is room. An entry may fit by now.
    pub(crate) fn want_room(&self) {
        self.region.word(WANTS_ROOM).publish(1);
    }

    fn word(&self, at: u64) -> &impl Word {
        self.region.word(ENTRIES + at as usize)
    }
}

impl<M: Memory> Consumer<M> {
    pub(crate) fn new(region: Arc<M>, capacity: usize) -> Self {
        Consumer {
            region,
            capacity: capacity as u64,
            head: 0,
            shown: Arc::default(),
            looked: 0,
        }
    }

    /// How many bytes it has gone on.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// The most bytes that the ring holds.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How far it has come, for [`waits`].
    pub(crate) fn shown(&self) -> &Arc<Shown> {
        &self.shown
    }

    /// Goes on to what stands behind so many bytes. That is shown before the producer hears of it: whoever finds a zero
    /// where he looked, as the producer is there again, sees then that he looked at a place that was left.
    fn go_on(&mut self, bytes: u64) {
        self.head += bytes;
        self.shown.store(self.head, Ordering::Release);
    }

    /// The oldest entry, if there is one. It stays until [`Consumer::pop`].
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Option<Entry> {
        loop {
            let at = offset(self.head, self.capacity);
            let place = ENTRIES + at as usize;
            match self.region.word(place).load(Ordering::Acquire) {
                0 => return None,
                // It ends where the entries begin: there is none at the beginning.
                FILLER if at > 0 => self.go_on(self.capacity - at),
                first => {
                    let mut header = [0; LINE];
                    header[..8].copy_from_slice(&first.to_le_bytes());
                    self.region.read(place + 8, &mut header[8..]);
                    return Some(Entry {
                        header,
                        at: at as usize,
                    });
                }
            }
        }
    }

    /// Copies what stands behind an entry's header, from `offset` on.
    ///
    /// # Errors
    /// [`Malformed`] if that is beyond the ring.
    pub(crate) fn copy(
        &self,
        entry: &Entry,
        offset: usize,
        out: &mut [u8],
    ) -> Result<(), Malformed> {
        let start = entry.at + LINE + offset;
        if start > self.capacity as usize || out.len() > self.capacity as usize - start {
            return Err(Malformed::new("ring", "an entry goes beyond its end"));
        }
        self.region.read(ENTRIES + start, out);
        Ok(())
    }

    /// Takes an entry that its producer may take back, before it is taken out; false if it has been. Whoever is the first to
    /// write to its last line, which is `offset` behind its header, has it.
    ///
    /// # Errors
    /// [`Malformed`] if that is beyond the ring.
    pub(crate) fn claim(&self, entry: &Entry, offset: usize) -> Result<bool, Malformed> {
        self.copy(entry, offset, &mut [0; LINE])?;
        Ok(self
            .region
            .word(ENTRIES + entry.at + LINE + offset)
            .swap(1, Ordering::SeqCst)
            == 0)
    }

    /// Takes out the oldest entry, of this size. True if the producer is to be told that there is room.
    ///
    /// # Errors
    /// [`Malformed`] if that goes beyond the ring.
    #[inline(always)]
    pub(crate) fn pop(&mut self, size: usize) -> Result<bool, Malformed> {
        let at = offset(self.head, self.capacity);
        if at + size as u64 > self.capacity || !size.is_multiple_of(LINE) {
            return Err(Malformed::new("ring", "an entry goes beyond its end"));
        }
        self.go_on(size as u64);
        self.region.word(HEAD).store(self.head, Ordering::Release);
        // Whoever wants room has found the ring full, so this is passed before it is empty again.
        Ok(self.head - self.looked >= self.capacity / 8 && self.room_is_wanted())
    }

    /// Whether the producer is to be told that there is room.
    pub(crate) fn room_is_wanted(&mut self) -> bool {
        self.looked = self.head;
        self.region.word(HEAD).publish(self.head);
        let wanted = self.region.word(WANTS_ROOM);
        wanted.load(Ordering::SeqCst) != 0 && wanted.swap(0, Ordering::SeqCst) != 0
    }
}

/// Says that somebody is about to sleep at a bell (one of 64): the producer rings it behind its next entry.
pub(crate) fn fall_asleep(region: &impl Memory, bell: u32) {
    region
        .word(ASLEEP)
        .fetch_or(1 << (bell % 64), Ordering::SeqCst);
}

/// Whether an entry, or a filler, waits. For a caller that does not hold the consumer.
pub(crate) fn waits(region: &impl Memory, capacity: usize, shown: &Shown) -> bool {
    loop {
        let head = shown.load(Ordering::Acquire);
        if region
            .word(ENTRIES + offset(head, capacity as u64) as usize)
            .load(Ordering::SeqCst)
            != 0
        {
            return true;
        }
        if shown.load(Ordering::Acquire) == head {
            return false;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shm::memory::Writers;

    fn ring(capacity: usize) -> (Producer, Consumer) {
        let (region, _) = Region::create("test", length(capacity), Writers::All).unwrap();
        let region = Arc::new(region);
        (
            Producer::new(region.clone(), capacity),
            Consumer::new(region, capacity),
        )
    }

    fn header(number: u64) -> [u8; LINE] {
        let mut header = [0; LINE];
        header[0] = 1;
        header[8..16].copy_from_slice(&number.to_le_bytes());
        header
    }

    #[test]
    fn entries_of_all_sizes_go_round_and_round() {
        let (mut producer, mut consumer) = ring(16 * LINE);
        let body: Vec<u8> = (0..=255).collect();
        let (mut sent, mut read) = (0u64, 0);
        let length = |number: u64| (number as usize * 37) % 256;
        while read < 1000 {
            while producer.push(&header(sent), &[], &[IoSlice::new(&body[..length(sent)])]) {
                sent += 1;
            }
            while let Some(entry) = consumer.peek() {
                assert_eq!(entry.header, header(read));
                let mut copy = vec![0; length(read)];
                consumer.copy(&entry, 0, &mut copy).unwrap();
                assert_eq!(copy, body[..length(read)]);
                consumer.pop(size(0, length(read))).unwrap();
                read += 1;
            }
        }
        assert_eq!(sent, read);
    }

    #[test]
    fn a_consumer_that_lies_gains_nothing() {
        let (mut producer, _) = ring(4 * LINE);
        (0..3).for_each(|number| assert!(producer.push(&header(number), &[], &[])));
        producer.region.word(HEAD).store(u64::MAX, Ordering::SeqCst);
        assert!(
            !producer.push(&header(3), &[], &[]),
            "what was not read was written over"
        );
    }

    #[test]
    fn entries_that_go_beyond_the_end_are_refused() {
        let (mut producer, mut consumer) = ring(4 * LINE);
        producer.push(&header(0), &[], &[]);
        let entry = consumer.peek().unwrap();
        assert!(consumer.copy(&entry, 0, &mut [0; 4 * LINE]).is_err());
        assert!(
            consumer
                .copy(&entry, usize::MAX - 2 * LINE, &mut [])
                .is_err()
        );
        assert!(consumer.pop(5 * LINE).is_err());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::atomic::{AtomicU64, fence};
    use loom::thread;

    /// Words one by one, so that the checker sees what is read of what was written.
    #[derive(Debug)]
    struct Lines(Vec<AtomicU64>);

    fn lines(count: usize) -> Arc<Lines> {
        Arc::new(Lines(
            (0..(ENTRIES / LINE + count) * 8)
                .map(|_| AtomicU64::new(0))
                .collect(),
        ))
    }

    impl Memory for Lines {
        fn word(&self, place: usize) -> &impl Word {
            &self.0[place / 8]
        }

        /// Of the bytes only the first word is kept: more would only be more orders of the same.
        fn write(&self, place: usize, bytes: &[u8]) {
            let word = u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes"));
            self.0[place / 8].store(word, Ordering::Relaxed);
        }

        fn read(&self, place: usize, out: &mut [u8]) {
            out[..8].copy_from_slice(&self.0[place / 8].load(Ordering::Relaxed).to_le_bytes());
        }
    }

    impl Word for AtomicU64 {
        fn load(&self, order: Ordering) -> u64 {
            self.load(order)
        }

        fn store(&self, value: u64, order: Ordering) {
            self.store(value, order);
        }

        fn swap(&self, value: u64, order: Ordering) -> u64 {
            self.swap(value, order)
        }

        fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
            let before = self.fetch_or(value, order);
            fence(Ordering::SeqCst);
            before
        }

        fn publish(&self, value: u64) {
            self.swap(value, Ordering::SeqCst);
            fence(Ordering::SeqCst);
        }
    }

    fn header(number: u8) -> [u8; LINE] {
        let mut header = [0; LINE];
        header[0] = 1;
        header[8] = number;
        header
    }

    /// Three entries through a ring of one and the line behind it: each arrives once, whole and in its order.
    #[test]
    fn loom_entries_arrive_whole() {
        crate::sync::check(|| {
            let region = lines(2);
            let mut producer = Producer::new(region.clone(), 2 * LINE);
            let sender = thread::spawn(move || {
                for number in 1..4 {
                    while !producer.push(&header(number), &[], &[]) {
                        thread::yield_now();
                    }
                }
            });
            let mut consumer = Consumer::new(region, 2 * LINE);
            for number in 1..4 {
                let entry = loop {
                    match consumer.peek() {
                        Some(entry) => break entry,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(entry.header, header(number));
                consumer.pop(LINE).unwrap();
            }
            sender.join().unwrap();
        });
    }

    /// One that finds no place before the ring's end goes to its beginning, behind what says so.
    #[test]
    fn loom_an_entry_behind_a_filler_arrives_whole() {
        crate::sync::check(|| {
            let region = lines(4);
            let mut producer = Producer::new(region.clone(), 4 * LINE);
            let mut consumer = Consumer::new(region, 4 * LINE);
            for number in 1..4 {
                assert!(producer.push(&header(number), &[], &[]));
                consumer.peek().unwrap();
                consumer.pop(LINE).unwrap();
            }
            let sender = thread::spawn(move || {
                assert!(producer.push(&header(4), &[], &[IoSlice::new(&[5; 8])]));
            });
            let entry = loop {
                match consumer.peek() {
                    Some(entry) => break entry,
                    None => thread::yield_now(),
                }
            };
            let mut body = [0; 8];
            consumer.copy(&entry, 0, &mut body).unwrap();
            assert_eq!((entry.header, body), (header(4), [5; 8]));
            consumer.pop(size(0, 8)).unwrap();
            assert!(consumer.peek().is_none());
            sender.join().unwrap();
        });
    }

    /// A consumer that falls asleep while an entry comes sees it, or is seen.
    #[test]
    fn loom_no_sleeper_is_forgotten() {
        crate::sync::check(|| {
            let region = lines(2);
            let mut producer = Producer::new(region.clone(), 2 * LINE);
            let sender = thread::spawn(move || {
                assert!(producer.push(&header(1), &[], &[]));
                producer.sleepers()
            });
            fall_asleep(&*region, 3);
            let seen = waits(&*region, 2 * LINE, &Shown::new(0));
            let rung = sender.join().unwrap() == 1 << 3;
            assert!(seen || rung, "neither saw the other");
        });
    }

    /// Two threads take turns at one consumer: what one leaves the other sees, or is woken for.
    #[test]
    fn loom_what_is_left_is_seen_by_who_falls_asleep() {
        crate::sync::check(|| {
            let region = lines(4);
            let mut producer = Producer::new(region.clone(), 4 * LINE);
            let mut consumer = Consumer::new(region.clone(), 4 * LINE);
            let shown = consumer.shown().clone();
            assert!(producer.push(&header(1), &[], &[]));
            let sender = thread::spawn(move || {
                assert!(producer.push(&header(2), &[], &[]));
                producer.sleepers()
            });
            let other = thread::spawn(move || {
                consumer.peek().unwrap();
                consumer.pop(LINE).unwrap();
            });
            fall_asleep(&*region, 3);
            let seen = waits(&*region, 4 * LINE, &shown);
            other.join().unwrap();
            assert!(
                seen || sender.join().unwrap() == 1 << 3,
                "the second entry waits for ever"
            );
        });
    }

    /// An entry that its producer takes back is used by one of both, whoever comes first.
    #[test]
    fn loom_an_entry_is_taken_or_taken_back() {
        crate::sync::check(|| {
            let region = lines(4);
            let mut producer = Producer::new(region.clone(), 4 * LINE);
            assert!(producer.push(&header(1), &[], &[IoSlice::new(&[0; LINE])]));
            let end = producer.tail();
            let block = Arc::new(AtomicU64::new(1));
            let sender = thread::spawn({
                let block = block.clone();
                move || {
                    let back = producer.take_back(end);
                    if back {
                        block.store(2, Ordering::Relaxed);
                    }
                    back
                }
            });
            let mut consumer = Consumer::new(region, 4 * LINE);
            let entry = consumer.peek().unwrap();
            let mine = consumer.claim(&entry, 0).unwrap();
            if mine {
                assert_eq!(block.load(Ordering::Relaxed), 1, "it was written over");
            }
            consumer.pop(2 * LINE).unwrap();
            assert_ne!(mine, sender.join().unwrap(), "both have it, or nobody");
        });
    }

    /// A producer that found the ring full is told of room, or finds some.
    #[test]
    fn loom_no_wish_for_room_is_forgotten() {
        crate::sync::check(|| {
            let region = lines(2);
            let mut producer = Producer::new(region.clone(), 2 * LINE);
            assert!(producer.push(&header(1), &[], &[]));
            let sender = thread::spawn(move || {
                if producer.push(&header(2), &[], &[]) {
                    return true;
                }
                producer.want_room();
                producer.push(&header(2), &[], &[])
            });
            let mut consumer = Consumer::new(region, 2 * LINE);
            consumer.peek().unwrap();
            let told = consumer.pop(LINE).unwrap();
            assert!(sender.join().unwrap() || told, "it waits for ever");
        });
    }
}
