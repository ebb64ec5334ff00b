//! Non-blocking exchanges, by their numbers.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_longlong};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use titin_runtime::Result;

use crate::error::usage;
use crate::mpwide::area::Area;
use crate::mpwide::calls::one;
use crate::mpwide::ending;
use crate::mpwide::table::table;
use crate::mpwide::transfer::{Posted, messages, post, wait_for_all};

static EXCHANGES: Mutex<Exchanges> = Mutex::new(Exchanges {
    begun: BTreeMap::new(),
    next: 0,
});

struct Exchanges {
    /// The exchanges that the program has not waited for.
    begun: BTreeMap<c_int, Arc<Exchange>>,
    next: c_int,
}

/// An exchange: a call that sends, one that receives, or both.
struct Exchange(Vec<Posted>);

fn exchanges() -> MutexGuard<'static, Exchanges> {
    EXCHANGES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn exchange(number: c_int) -> Result<Arc<Exchange>> {
    let exchange = exchanges().begun.get(&number).cloned();
    exchange.ok_or_else(|| {
        usage(format!(
            "there is no exchange {number}: give a number that MPW_ISendRecv has returned, before MPW_Wait"
        ))
    })
}

/// Forgets all exchanges.
pub(super) fn forget_all() {
    let forgotten = std::mem::take(&mut exchanges().begun);
    drop(forgotten);
}

/// # Safety
/// `bytes` is NULL or points to `size` bytes that do not change until the exchange is done; `memory` is NULL or points to
/// `room` writable bytes that no other code uses until then.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_mpw_isendrecv(
    bytes: *mut c_char,
    size: c_longlong,
    memory: *mut c_char,
    room: c_longlong,
    path: c_int,
) -> c_int {
    ending("MPW_ISendRecv", || {
        let carrier = table().carrier_of_path(path)?;
        let sends = one(&carrier, Area::new(bytes, size)?);
        let receives = one(&carrier, Area::new(memory, room)?);
        // SAFETY: as the caller promises.
        let (outgoing, incoming) = unsafe { messages(sends, receives) }?;
        let exchange = Arc::new(Exchange(post(outgoing, incoming)));
        let mut exchanges = exchanges();
        let number = exchanges.next;
        exchanges.next = number
            .checked_add(1)
            .ok_or_else(|| usage("no number is left for an exchange"))?;
        exchanges.begun.insert(number, exchange);
        Ok(number)
    })
}

#[unsafe(no_mangle)]
extern "C" fn titin_mpw_has_nbe_finished(number: c_int) -> c_int {
    ending("MPW_Has_NBE_Finished", || {
        let exchange = exchange(number)?;
        let is_done = exchange.0.iter().all(|call| call.request.test());
        Ok(is_done.into())
    })
}

#[unsafe(no_mangle)]
extern "C" fn titin_mpw_wait(number: c_int) {
    ending("MPW_Wait", || {
        let exchange = exchange(number)?;
        wait_for_all(&exchange.0)?;
        exchanges().begun.remove(&number);
        Ok(())
    });
}
