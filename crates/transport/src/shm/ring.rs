//! Entries in shared memory from one producer to one consumer.
//!
//! The ring consists of lines of 64 bytes. An entry takes whole consecutive lines. The producer
//! writes the entry's first word last, and the consumer sees the entry once the first word is not
//! zero. So a small entry crosses from one core to the other as one line, and the consumer never
//! sees an unfinished entry. Before the producer publishes an entry, the producer sets the first
//! word behind the entry to zero: the consumer finds no entry of the last round there. So only the
//! producer writes lines.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use titin_wire::{Malformed, padded};

use crate::shared_memory::{AtomicWord, RingMemory, SharedRegion};

/// The position of a consumer: bytes read since the beginning.
pub(crate) type ReadPosition = crate::sync::AtomicU64;

/// Bytes of a line, and of an entry's header.
pub(crate) const LINE: usize = 64;

/// Offsets in a region: of the words, each in a line of its own, and of the first entry.
const HEAD: usize = 0;
const ASLEEP: usize = LINE;
const WANTS_ROOM: usize = 2 * LINE;
pub(crate) const ENTRIES: usize = 64 * LINE;

/// First word of the entry that fills the lines up to the end, where the next entry is at the
/// beginning.
const FILLER: u64 = 0xff;

/// An empty ring goes on at its beginning each time that so many bytes have gone through: messages
/// that are answered one by one stay in memory that the caches of both cores hold.
pub(crate) const HOME: u64 = 32 << 10;

/// The end where entries are put in. One thread at a time.
#[derive(Debug)]
pub(crate) struct Producer<M = SharedRegion> {
    region: Arc<M>,
    capacity: u64,
    /// Bytes put in since the beginning.
    tail: u64,
    /// Bytes read by the consumer, as of the producer's last look.
    head: u64,
}

/// The end where entries are taken out. One thread at a time.
#[derive(Debug)]
pub(crate) struct Consumer<M = SharedRegion> {
    region: Arc<M>,
    capacity: u64,
    head: u64,
    /// A copy of `head`, for threads that only look for a waiting entry.
    read_position: Arc<ReadPosition>,
    /// The head when the consumer last checked whether the producer wants room.
    checked: u64,
}

/// The header of an entry, and the entry's offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RingEntry {
    pub(crate) header: [u8; LINE],
    at: usize,
}

/// Bytes of a region with a ring of `capacity` bytes, a power of two of several lines.
pub(crate) fn length(capacity: usize) -> usize {
    ENTRIES + capacity
}

/// The offset, in a ring of `capacity` bytes, of the place `position` bytes from the beginning.
fn offset(position: u64, capacity: u64) -> u64 {
    position & (capacity - 1)
}

/// Bytes of an entry with metadata and a body of the given lengths.
pub(crate) fn size(meta: usize, body: usize) -> usize {
    LINE + meta + padded(body)
}

impl<M: RingMemory> Producer<M> {
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

    /// Bytes read by the consumer since the beginning. Impossible values are ignored.
    pub(crate) fn read(&mut self) -> u64 {
        // After `want_room` the load sees the position of a consumer that did not see the request.
        let head = self.region.word(HEAD).load(Ordering::SeqCst);
        if head <= self.tail && head >= self.head {
            self.head = head;
        }
        self.head
    }

    /// Puts an entry in: a header with a first byte other than zero, metadata of whole lines, and a
    /// body in parts. False if there is no room.
    #[inline(always)]
    pub(crate) fn push(&mut self, header: &[u8; LINE], meta: &[u8], body: &[IoSlice<'_>]) -> bool {
        let length = body.iter().map(|part| part.len()).sum();
        let size = size(meta.len(), length) as u64;
        let at = offset(self.tail, self.capacity);
        let is_end = at + size > self.capacity;
        let leaves_home = at / HOME != (at + size) / HOME;
        if is_end || (leaves_home && self.read() == self.tail) {
            return self.push_at_beginning(header, meta, body, size);
        }
        let next = self.tail + size;
        if !self.has_room_until(next) {
            return false;
        }
        self.zero_behind(next);
        let first = self.write(at, header, meta, body);
        self.word(at).publish(first);
        self.tail = next;
        // Most entries are as large as the entry before: fetch the lines of the next entry.
        let end = next + LINE as u64;
        for line in (0..size).step_by(LINE) {
            self.region
                .fetch(ENTRIES + offset(end + line, self.capacity) as usize);
        }
        true
    }

    /// As [`Producer::push`], with the entry at the beginning of the ring. A filler takes the lines up
    /// to the end.
    #[cold]
    fn push_at_beginning(
        &mut self,
        header: &[u8; LINE],
        meta: &[u8],
        body: &[IoSlice<'_>],
        size: u64,
    ) -> bool {
        let at = offset(self.tail, self.capacity);
        let next = self.tail + self.capacity - at + size;
        if !self.has_room_until(next) {
            return false;
        }
        self.zero_behind(next);
        let first = self.write(0, header, meta, body);
        self.word(0).store(first, Ordering::Release);
        self.word(at).publish(FILLER);
        self.tail = next;
        true
    }

    /// Whether the consumer has read enough for an entry that ends at the position `next`. The
    /// producer also writes the line behind the entry.
    #[inline(always)]
    fn has_room_until(&mut self, next: u64) -> bool {
        let end = next + LINE as u64;
        end - self.head <= self.capacity || end - self.read() <= self.capacity
    }

    /// Sets the first word behind an entry that ends at the position `next` to zero.
    #[inline(always)]
    fn zero_behind(&self, next: u64) {
        self.word(offset(next, self.capacity))
            .store(0, Ordering::Release);
    }

    /// Writes an entry at the offset `at`, but for its first word. Returns the first word.
    #[inline(always)]
    fn write(&self, at: u64, header: &[u8; LINE], meta: &[u8], body: &[IoSlice<'_>]) -> u64 {
        let mut place = ENTRIES + at as usize;
        self.region.write(place + 8, &header[8..]);
        place += LINE;
        if !meta.is_empty() {
            self.region.write(place, meta);
            place += meta.len();
        }
        for part in body.iter().filter(|part| !part.is_empty()) {
            self.region.write(place, part);
            place += part.len();
        }
        u64::from_le_bytes(*header.first_chunk().expect("longer"))
    }

    /// The bells at which a thread of the peer sleeps, to be rung. Called after each entry.
    pub(crate) fn sleepers(&self) -> u64 {
        let asleep = self.region.word(ASLEEP);
        if asleep.load(Ordering::SeqCst) == 0 {
            0
        } else {
            asleep.swap(0, Ordering::SeqCst)
        }
    }

    /// Takes back the entry with its end at `end`. Only one side may use the entry. True if the
    /// consumer has not taken the entry, and never will.
    pub(crate) fn take_back(&mut self, end: u64) -> bool {
        self.read() < end
            && self
                .word(offset(end - LINE as u64, self.capacity))
                .swap(1, Ordering::SeqCst)
                == 0
    }

    /// Asks the consumer to tell once there is room. An entry may fit by now.
    pub(crate) fn want_room(&self) {
        self.region.word(WANTS_ROOM).publish(1);
    }

    fn word(&self, at: u64) -> &impl AtomicWord {
        self.region.word(ENTRIES + at as usize)
    }
}

impl<M: RingMemory> Consumer<M> {
    pub(crate) fn new(region: Arc<M>, capacity: usize) -> Self {
        Consumer {
            region,
            capacity: capacity as u64,
            head: 0,
            read_position: Arc::default(),
            checked: 0,
        }
    }

    /// Bytes read since the beginning.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// The most bytes in the ring.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The position, for [`has_entry`].
    pub(crate) fn read_position(&self) -> &Arc<ReadPosition> {
        &self.read_position
    }

    /// Moves the head on. Other threads of this process see the new position before the producer
    /// sees the head. So a thread that reads a zero from the producer's next round also finds a
    /// changed position.
    fn advance(&mut self, bytes: u64) {
        self.head += bytes;
        self.read_position.store(self.head, Ordering::Release);
    }

    /// The oldest entry, if any. The entry stays until [`Consumer::pop`].
    #[inline(always)]
    pub(crate) fn peek(&mut self) -> Option<RingEntry> {
        loop {
            let at = offset(self.head, self.capacity);
            let place = ENTRIES + at as usize;
            match self.region.word(place).load(Ordering::Acquire) {
                0 => return None,
                // A filler reaches to the end of the ring, and never starts at the beginning.
                FILLER if at > 0 => self.advance(self.capacity - at),
                first => {
                    let mut header = [0; LINE];
                    header[..8].copy_from_slice(&first.to_le_bytes());
                    self.region.read(place + 8, &mut header[8..]);
                    return Some(RingEntry {
                        header,
                        at: at as usize,
                    });
                }
            }
        }
    }

    /// Copies the bytes behind an entry's header, from `offset` on.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are beyond the ring.
    pub(crate) fn copy(
        &self,
        entry: &RingEntry,
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

    /// Claims an entry that the producer may take back; false if the producer has taken the entry
    /// back. The first side to write to the entry's last line, `offset` bytes behind the header,
    /// gets the entry.
    ///
    /// # Errors
    /// [`Malformed`] if the line is beyond the ring.
    pub(crate) fn claim(&self, entry: &RingEntry, offset: usize) -> Result<bool, Malformed> {
        self.copy(entry, offset, &mut [0; LINE])?;
        Ok(self
            .region
            .word(ENTRIES + entry.at + LINE + offset)
            .swap(1, Ordering::SeqCst)
            == 0)
    }

    /// Removes the oldest entry, of `size` bytes. True if the producer is to be told of room.
    ///
    /// # Errors
    /// [`Malformed`] if the entry goes beyond the ring.
    #[inline(always)]
    pub(crate) fn pop(&mut self, size: usize) -> Result<bool, Malformed> {
        let at = offset(self.head, self.capacity);
        if at + size as u64 > self.capacity || !size.is_multiple_of(LINE) {
            return Err(Malformed::new("ring", "an entry goes beyond its end"));
        }
        self.advance(size as u64);
        self.region.word(HEAD).store(self.head, Ordering::Release);
        // A producer that wants room has found the ring full, so the threshold is passed before the
        // ring is empty.
        Ok(self.head - self.checked >= self.capacity / 8 && self.room_is_wanted())
    }

    /// Whether the producer is to be told of room.
    pub(crate) fn room_is_wanted(&mut self) -> bool {
        self.checked = self.head;
        self.region.word(HEAD).publish(self.head);
        let wanted = self.region.word(WANTS_ROOM);
        wanted.load(Ordering::SeqCst) != 0 && wanted.swap(0, Ordering::SeqCst) != 0
    }
}

/// Announces a thread that is about to sleep at a bell (modulo 64): the producer rings the bell
/// behind the next entry.
pub(crate) fn announce_sleep(region: &impl RingMemory, bell: u32) {
    region
        .word(ASLEEP)
        .fetch_or(1 << (bell % 64), Ordering::SeqCst);
}

/// Whether an entry, or a filler, waits. For a thread without the consumer.
pub(crate) fn has_entry(
    region: &impl RingMemory,
    capacity: usize,
    read_position: &ReadPosition,
) -> bool {
    loop {
        let head = read_position.load(Ordering::Acquire);
        if region
            .word(ENTRIES + offset(head, capacity as u64) as usize)
            .load(Ordering::SeqCst)
            != 0
        {
            return true;
        }
        if read_position.load(Ordering::Acquire) == head {
            return false;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::shared_memory::Writers;

    fn ring(capacity: usize) -> (Producer, Consumer) {
        let (region, _) = SharedRegion::create("test", length(capacity), Writers::All).unwrap();
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
    fn an_empty_ring_goes_on_at_its_beginning() {
        let (mut producer, mut consumer) = ring(4 * HOME as usize);
        let body = [7; 1000];
        let length = size(0, body.len());
        let mut farthest = 0;
        for number in 0..1000 {
            assert!(producer.push(&header(number), &[], &[IoSlice::new(&body)]));
            let entry = consumer.peek().unwrap();
            assert_eq!(entry.header, header(number));
            farthest = farthest.max(entry.at + length);
            consumer.pop(length).unwrap();
        }
        assert!(farthest <= HOME as usize + length, "{farthest}");
        // A ring with an entry is used to its end, as far as it has room.
        let kept =
            (0..).take_while(|number| producer.push(&header(*number), &[], &[IoSlice::new(&body)]));
        let kept = kept.count();
        assert!(kept > 3 * HOME as usize / length - 2, "{kept}");
        for number in 0..kept as u64 {
            assert_eq!(consumer.peek().unwrap().header, header(number));
            consumer.pop(length).unwrap();
        }
        assert!(consumer.peek().is_none());
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

    /// Separate words, so that the checker sees each access.
    #[derive(Debug)]
    struct Lines(Vec<AtomicU64>);

    fn lines(count: usize) -> Arc<Lines> {
        Arc::new(Lines(
            (0..(ENTRIES / LINE + count) * 8)
                .map(|_| AtomicU64::new(0))
                .collect(),
        ))
    }

    impl RingMemory for Lines {
        fn word(&self, offset: usize) -> &impl AtomicWord {
            &self.0[offset / 8]
        }

        /// Stores the first word only: more words would only add orders of the same events.
        fn write(&self, offset: usize, bytes: &[u8]) {
            let word = u64::from_le_bytes(*bytes.first_chunk().expect("eight bytes"));
            self.0[offset / 8].store(word, Ordering::Relaxed);
        }

        fn read(&self, offset: usize, out: &mut [u8]) {
            out[..8].copy_from_slice(&self.0[offset / 8].load(Ordering::Relaxed).to_le_bytes());
        }
    }

    impl AtomicWord for AtomicU64 {
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

    /// Three entries go through a ring that has room for one: each arrives once, whole and in
    /// order.
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

    /// An entry that does not fit before the ring's end goes to its beginning, behind a filler.
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

    /// A consumer that falls asleep while an entry comes sees the entry, or the producer sees the
    /// sleeper.
    #[test]
    fn loom_no_sleeper_is_forgotten() {
        crate::sync::check(|| {
            let region = lines(2);
            let mut producer = Producer::new(region.clone(), 2 * LINE);
            let sender = thread::spawn(move || {
                assert!(producer.push(&header(1), &[], &[]));
                producer.sleepers()
            });
            announce_sleep(&*region, 3);
            let seen = has_entry(&*region, 2 * LINE, &ReadPosition::new(0));
            let rung = sender.join().unwrap() == 1 << 3;
            assert!(seen || rung, "neither saw the other");
        });
    }

    /// Two threads take turns at one consumer. Each entry is seen by one of the threads, or wakes
    /// the other.
    #[test]
    fn loom_a_thread_that_falls_asleep_sees_entries_left_by_another() {
        crate::sync::check(|| {
            let region = lines(4);
            let mut producer = Producer::new(region.clone(), 4 * LINE);
            let mut consumer = Consumer::new(region.clone(), 4 * LINE);
            let shown = consumer.read_position().clone();
            assert!(producer.push(&header(1), &[], &[]));
            let sender = thread::spawn(move || {
                assert!(producer.push(&header(2), &[], &[]));
                producer.sleepers()
            });
            let other = thread::spawn(move || {
                consumer.peek().unwrap();
                consumer.pop(LINE).unwrap();
            });
            announce_sleep(&*region, 3);
            let seen = has_entry(&*region, 4 * LINE, &shown);
            other.join().unwrap();
            assert!(
                seen || sender.join().unwrap() == 1 << 3,
                "the second entry waits for ever"
            );
        });
    }

    /// If the producer takes an entry back, only one side uses the entry.
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
