//! Taking turns at something that one thread at a time may work on, without waiting for who is at it.
//!
//! Some threads must have their turn, and wait for it, in the order in which they came. Others must not wait: they
//! leave what they have, and whoever is at work does it as well before it goes. Nothing is left undone, since a
//! worker goes only once it finds, under the same lock under which things are left, that nothing is.

use crate::sync::{Condvar, Mutex, MutexGuard};

/// Something (`W`) that one thread at a time works on, and what others have left (`T`) to be done to it.
pub(crate) struct Turns<W, T> {
    work: Mutex<W>,
    queue: Mutex<Queue<T>>,
    freed: Condvar,
}

struct Queue<T> {
    /// Number of the turn that is on, or would be next.
    serving: u64,
    /// Number of the next turn to be given out.
    next: u64,
    left: Vec<T>,
}

impl<W, T> Turns<W, T> {
    pub(crate) fn new(work: W) -> Self {
        let queue = Queue {
            serving: 0,
            next: 0,
            left: Vec::new(),
        };
        Turns {
            work: Mutex::new(work),
            queue: Mutex::new(queue),
            freed: Condvar::new(),
        }
    }

    /// Waits for a turn and does `first`, with what has been left, then `after` as long as more is.
    pub(crate) fn wait<R>(
        &self,
        first: impl FnOnce(&mut W, Vec<T>) -> R,
        after: impl FnMut(&mut W, Vec<T>),
    ) -> R {
        let mut queue = self.queue();
        let mine = queue.next;
        queue.next += 1;
        while queue.serving != mine {
            queue = self.freed.wait(queue).expect(HELD);
        }
        let left = std::mem::take(&mut queue.left);
        drop(queue);
        let turn = Turn(self);
        let result = first(&mut self.work.lock().expect(HELD), left);
        turn.end(after);
        result
    }

    /// Does `work` now, with what has been left, and as long as more is. If somebody is at it, does nothing.
    pub(crate) fn visit(&self, mut work: impl FnMut(&mut W, Vec<T>)) {
        self.enter(None, |held, left| work(held, left));
    }

    /// Leaves `item` to whoever is at work; if nobody is, does `work`.
    pub(crate) fn leave(&self, item: T, work: impl FnMut(&mut W, Vec<T>)) {
        self.enter(Some(item), work);
    }

    fn enter(&self, item: Option<T>, mut work: impl FnMut(&mut W, Vec<T>)) {
        let mut queue = self.queue();
        queue.left.extend(item);
        if queue.serving != queue.next {
            return;
        }
        queue.next += 1;
        let left = std::mem::take(&mut queue.left);
        drop(queue);
        let turn = Turn(self);
        work(&mut self.work.lock().expect(HELD), left);
        turn.end(work);
    }

    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().expect(HELD)
    }
}

const HELD: &str = "nothing panics at work";

/// A turn, which ends even if its work panics: others then find the lock poisoned, rather than wait for ever.
struct Turn<'a, W, T>(&'a Turns<W, T>);

impl<W, T> Turn<'_, W, T> {
    fn end(self, mut after: impl FnMut(&mut W, Vec<T>)) {
        loop {
            let mut queue = self.0.queue();
            if queue.left.is_empty() {
                self.0.pass(&mut queue);
                drop(queue);
                return std::mem::forget(self);
            }
            let left = std::mem::take(&mut queue.left);
            drop(queue);
            after(&mut self.0.work.lock().expect(HELD), left);
        }
    }
}

impl<W, T> Turns<W, T> {
    fn pass(&self, queue: &mut Queue<T>) {
        queue.serving += 1;
        if queue.serving != queue.next {
            self.freed.notify_all();
        }
    }
}

impl<W, T> Drop for Turn<'_, W, T> {
    fn drop(&mut self) {
        if let Ok(mut queue) = self.0.queue.lock() {
            self.0.pass(&mut queue);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn what_is_left_during_a_turn_is_done_in_it() {
        let turns = Turns::new(Vec::new());
        let result = turns.wait(
            |done: &mut Vec<u32>, left| {
                assert!(left.is_empty());
                turns.leave(1, |_, _| panic!("somebody is at work"));
                turns.visit(|_, _| panic!("somebody is at work"));
                done.push(0);
                7
            },
            |done, left| done.extend(left),
        );
        assert_eq!(result, 7);
        turns.leave(2, |done, left| done.extend(left));
        turns.visit(|done, left| assert_eq!((&done[..], left.len()), (&[0, 1, 2][..], 0)));
    }

    #[test]
    fn a_panic_ends_its_turn() {
        let turns: Turns<(), u32> = Turns::new(());
        let first = catch_unwind(AssertUnwindSafe(|| {
            turns.wait(|_, _| panic!("first"), |_, _| ())
        }));
        assert_eq!(first.unwrap_err().downcast_ref(), Some(&"first"));
        assert!(catch_unwind(AssertUnwindSafe(|| turns.wait(|_, _| (), |_, _| ()))).is_err());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// One who waits for a turn, two who leave something: both things are done once all have gone.
    #[test]
    fn loom_nothing_is_left_undone() {
        crate::sync::check(|| {
            let turns = Arc::new(Turns::new(Vec::new()));
            let leavers: Vec<_> = (1..3)
                .map(|item| {
                    let turns = turns.clone();
                    thread::spawn(move || {
                        turns.leave(item, |done: &mut Vec<u32>, left| done.extend(left))
                    })
                })
                .collect();
            turns.wait(
                |done, left| {
                    done.extend(left);
                    done.push(0);
                },
                |done, left| done.extend(left),
            );
            leavers
                .into_iter()
                .for_each(|leaver| leaver.join().unwrap());
            let mut done = turns.work.lock().unwrap().clone();
            done.sort();
            assert_eq!(done, [0, 1, 2]);
        });
    }

    /// Two who wait and one who visits: never two at work, nobody waits for ever.
    #[test]
    fn loom_one_at_a_time() {
        crate::sync::check(|| {
            let turns: Arc<Turns<u32, ()>> = Arc::new(Turns::new(0));
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let turns = turns.clone();
                    thread::spawn(move || turns.wait(|count, _| *count += 1, |_, _| ()))
                })
                .collect();
            turns.visit(|count, _| *count += 10);
            others.into_iter().for_each(|other| other.join().unwrap());
            assert!([2, 12].contains(&*turns.work.lock().unwrap()));
        });
    }
}
