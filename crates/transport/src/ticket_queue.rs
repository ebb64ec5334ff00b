//! A ticket lock with a queue of deferred items.
//!
//! One thread at a time works on the protected value. Some threads wait for a turn, in the order of
//! their arrival. Other threads must not wait: such a thread leaves an item, and the thread at work
//! handles the item before the end of its turn. No item is forgotten: a thread ends its turn only
//! after the thread has found the queue empty, and items are left under the same lock.

use crate::sync::{Condvar, Mutex, MutexGuard};

/// A value (`W`) for one working thread at a time, and the items (`T`) left by other threads.
pub(crate) struct TicketQueue<W, T> {
    work: Mutex<W>,
    queue: Mutex<Tickets<T>>,
    freed: Condvar,
}

struct Tickets<T> {
    /// The ticket at work, or the next ticket to work.
    serving: u64,
    /// The next ticket to be given out.
    next: u64,
    items: Vec<T>,
}

impl<W, T> TicketQueue<W, T> {
    pub(crate) fn new(work: W) -> Self {
        let queue = Tickets {
            serving: 0,
            next: 0,
            items: Vec::new(),
        };
        TicketQueue {
            work: Mutex::new(work),
            queue: Mutex::new(queue),
            freed: Condvar::new(),
        }
    }

    /// Waits for a turn. Calls `first` with the items left so far, and then `after` as long as
    /// there are more.
    pub(crate) fn work_in_turn<R>(
        &self,
        first: impl FnOnce(&mut W, Vec<T>) -> R,
        after: impl FnMut(&mut W, Vec<T>),
    ) -> R {
        self.work_in_turn_after(|| (), first, after)
    }

    /// As [`TicketQueue::work_in_turn`]. Calls `before_wait` first if the thread has to wait.
    pub(crate) fn work_in_turn_after<R>(
        &self,
        before_wait: impl FnOnce(),
        first: impl FnOnce(&mut W, Vec<T>) -> R,
        after: impl FnMut(&mut W, Vec<T>),
    ) -> R {
        let mut queue = self.queue();
        let mine = queue.next;
        queue.next += 1;
        if queue.serving != mine {
            drop(queue);
            before_wait();
            queue = self.queue();
        }
        while queue.serving != mine {
            queue = self.freed.wait(queue).expect(HELD);
        }
        let items = std::mem::take(&mut queue.items);
        drop(queue);
        let turn = Turn(self);
        let result = first(&mut self.work.lock().expect(HELD), items);
        turn.end(after);
        result
    }

    /// Calls `work` with the items left so far, and again as long as there are more. Does nothing
    /// if another thread is at work.
    pub(crate) fn work_if_free(&self, mut work: impl FnMut(&mut W, Vec<T>)) {
        self.enter(None, |value, items| work(value, items));
    }

    /// Leaves `item` to the thread at work, or calls `work` if there is none.
    pub(crate) fn leave(&self, item: T, work: impl FnMut(&mut W, Vec<T>)) {
        self.enter(Some(item), work);
    }

    fn enter(&self, item: Option<T>, mut work: impl FnMut(&mut W, Vec<T>)) {
        let mut queue = self.queue();
        queue.items.extend(item);
        if queue.serving != queue.next {
            return;
        }
        queue.next += 1;
        let items = std::mem::take(&mut queue.items);
        drop(queue);
        let turn = Turn(self);
        work(&mut self.work.lock().expect(HELD), items);
        turn.end(work);
    }

    fn queue(&self) -> MutexGuard<'_, Tickets<T>> {
        self.queue.lock().expect(HELD)
    }
}

const HELD: &str = "nothing panics at work";

/// A turn. The turn ends even if its work panics: other threads then find the lock poisoned, and do
/// not wait for ever.
struct Turn<'a, W, T>(&'a TicketQueue<W, T>);

impl<W, T> Turn<'_, W, T> {
    fn end(self, mut after: impl FnMut(&mut W, Vec<T>)) {
        loop {
            let mut queue = self.0.queue();
            if queue.items.is_empty() {
                self.0.pass(&mut queue);
                drop(queue);
                return std::mem::forget(self);
            }
            let items = std::mem::take(&mut queue.items);
            drop(queue);
            after(&mut self.0.work.lock().expect(HELD), items);
        }
    }
}

impl<W, T> TicketQueue<W, T> {
    fn pass(&self, queue: &mut Tickets<T>) {
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
    fn items_left_during_a_turn_are_handled_in_it() {
        let queue = TicketQueue::new(Vec::new());
        let result = queue.work_in_turn(
            |done: &mut Vec<u32>, left| {
                assert!(left.is_empty());
                queue.leave(1, |_, _| panic!("another thread is at work"));
                queue.work_if_free(|_, _| panic!("another thread is at work"));
                done.push(0);
                7
            },
            |done, left| done.extend(left),
        );
        assert_eq!(result, 7);
        queue.leave(2, |done, left| done.extend(left));
        queue.work_if_free(|done, left| assert_eq!((&done[..], left.len()), (&[0, 1, 2][..], 0)));
    }

    #[test]
    fn a_panic_ends_its_turn() {
        let queue: TicketQueue<(), u32> = TicketQueue::new(());
        let first = catch_unwind(AssertUnwindSafe(|| {
            queue.work_in_turn(|_, _| panic!("first"), |_, _| ())
        }));
        assert_eq!(first.unwrap_err().downcast_ref(), Some(&"first"));
        assert!(
            catch_unwind(AssertUnwindSafe(|| queue.work_in_turn(|_, _| (), |_, _| ()))).is_err()
        );
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// One thread waits for a turn, two others leave an item: both items are handled once all
    /// threads have ended.
    #[test]
    fn loom_no_item_is_forgotten() {
        crate::sync::check(|| {
            let queue = Arc::new(TicketQueue::new(Vec::new()));
            let leavers: Vec<_> = (1..3)
                .map(|item| {
                    let queue = queue.clone();
                    thread::spawn(move || {
                        queue.leave(item, |done: &mut Vec<u32>, left| done.extend(left))
                    })
                })
                .collect();
            queue.work_in_turn(
                |done, left| {
                    done.extend(left);
                    done.push(0);
                },
                |done, left| done.extend(left),
            );
            leavers
                .into_iter()
                .for_each(|leaver| leaver.join().unwrap());
            let mut done = queue.work.lock().unwrap().clone();
            done.sort();
            assert_eq!(done, [0, 1, 2]);
        });
    }

    /// Two threads wait for a turn and one works if free: never two at work, and none waits for
    /// ever.
    #[test]
    fn loom_one_at_a_time() {
        crate::sync::check(|| {
            let queue: Arc<TicketQueue<u32, ()>> = Arc::new(TicketQueue::new(0));
            let others: Vec<_> = (0..2)
                .map(|_| {
                    let queue = queue.clone();
                    thread::spawn(move || queue.work_in_turn(|count, _| *count += 1, |_, _| ()))
                })
                .collect();
            queue.work_if_free(|count, _| *count += 10);
            others.into_iter().for_each(|other| other.join().unwrap());
            assert!([2, 12].contains(&*queue.work.lock().unwrap()));
        });
    }
}
