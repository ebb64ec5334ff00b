//! Memory that is lent to be filled and sent from where it lies.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use titin_runtime::{Dtype, LayoutRef, Lent, Loan, Payload, Result};

use crate::array;
use crate::error::{OK, keep, null, status, usage, value};
use crate::handle::{Port, on_port};
use crate::input;
use crate::send::{Stamps, send};
use crate::value::Value;

/// What `titin_loan` points to, for each of its owners.
pub(crate) struct Lending {
    state: Mutex<State>,
    /// Where its data begin.
    place: usize,
}

enum State {
    /// The program writes to it.
    Filling(Loan),
    /// It was handed to a send, and does not change any more.
    Frozen(Lent),
    /// On the way from the one to the other.
    Between,
}

/// Loans that have an owner and their bytes, by where these begin, for languages whose arrays are no more than their
/// memory.
static LOANS: LazyLock<Mutex<HashMap<usize, (usize, usize)>>> = LazyLock::new(Mutex::default);

impl Lending {
    fn new(mut loan: Loan) -> Arc<Self> {
        let (place, bytes) = (
            loan.bytes_mut().as_mut_ptr() as usize,
            loan.bytes_mut().len(),
        );
        let lending = Arc::new(Lending {
            state: Mutex::new(State::Filling(loan)),
            place,
        });
        let loans = LOANS.lock();
        let address = Arc::as_ptr(&lending) as usize;
        loans
            .unwrap_or_else(PoisonError::into_inner)
            .insert(place, (address, bytes));
        lending
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the filling, if that has not ended before.
    fn freeze(&self) -> Lent {
        let mut state = self.state();
        let lent = match std::mem::replace(&mut *state, State::Between) {
            State::Filling(mut loan) => {
                if loan.layout().dtype == Dtype::Bool {
                    array::make_bools(loan.bytes_mut());
                }
                loan.finish()
            }
            State::Frozen(lent) => lent,
            State::Between => unreachable!("nothing fails between"),
        };
        *state = State::Frozen(lent.clone());
        lent
    }
}

impl Drop for Lending {
    fn drop(&mut self) {
        // In a forked child whoever held the lock may not exist any more.
        if titin_runtime::not_forked().is_err() {
            return;
        }
        let mut loans = LOANS.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of no bytes may lie at one place.
        if loans
            .get(&self.place)
            .is_some_and(|(address, _)| *address == (&raw const *self) as usize)
        {
            loans.remove(&self.place);
        }
    }
}

/// The loan behind a handle.
///
/// # Safety
/// `handle` is NULL or a loan that is not freed while the result is used.
unsafe fn loan<'a>(handle: *const Lending) -> Result<&'a Lending> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_ref() }.ok_or_else(|| null("loan", "titin_loan_new"))
}

/// # Safety
/// `port` is NULL or a port; `extents` and `names` are NULL or have `rank` entries; `loan` is NULL or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_loan_new(
    port: *mut Port,
    slot: c_int,
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    order: c_int,
    names: *const *const c_char,
    loan: *mut *mut Lending,
) -> c_int {
    if loan.is_null() {
        return keep(usage("NULL was given where the loan was to be written"));
    }
    // SAFETY: not NULL, so the caller lets it be written.
    unsafe { loan.write(std::ptr::null_mut()) };
    // SAFETY: as the caller promises.
    unsafe {
        on_port(port, |port| {
            let slot = input::slot(slot, port.name())?;
            let (form, names) = (
                array::form(dtype, rank, extents, order)?,
                array::names(names, rank)?,
            );
            let layout = LayoutRef {
                names: &names,
                ..form
            }
            .to_layout();
            let lent = port.shared.instance.loan(port.id, slot, layout)?;
            loan.write(Arc::into_raw(Lending::new(lent)).cast_mut());
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a loan.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_loan_data(handle: *mut Lending) -> *mut c_void {
    value(std::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        match &mut *unsafe { loan(handle) }?.state() {
            State::Filling(loan) => Ok(loan.bytes_mut().as_mut_ptr().cast()),
            _ => Err(usage(
                "this loan was handed to a send, so its data do not change any more: send it, or ask for another one",
            )),
        }
    })
}

/// # Safety
/// `data` is any pointer; the loan that it leads to is not freed meanwhile.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_loan_find(data: *const c_void, nbytes: i64) -> *mut Lending {
    value(std::ptr::null_mut(), || {
        let loans = LOANS.lock().unwrap_or_else(PoisonError::into_inner);
        match loans.get(&(data as usize)) {
            None => Err(usage(
                "no loan has its data here: it was sent or given back, or this is memory of the program's own",
            )),
            Some((_, bytes)) if *bytes as i64 != nbytes => Err(usage(format!(
                "a part of a loan, {nbytes} bytes of {bytes}: loans are sent whole"
            ))),
            Some((address, _)) => Ok(*address as *mut Lending),
        }
    })
}

/// # Safety
/// `port` is NULL or a port; `handle` is NULL or points to NULL or a loan; `settings` is NULL or a value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_send_loan(
    port: *mut Port,
    slot: c_int,
    handle: *mut *mut Lending,
    timestamp: f64,
    next: f64,
    settings: *const Value,
) -> c_int {
    // SAFETY: as the caller promises.
    let given = unsafe { handle.as_ref() }.map_or(std::ptr::null_mut(), |given| *given);
    let stamps = Stamps {
        slot,
        timestamp,
        next,
        settings,
    };
    // SAFETY: as the caller promises.
    let outcome = unsafe {
        on_port(port, |port| {
            let lent = loan(given)?.freeze();
            send(port, &Payload::lent(&lent), &stamps)
        })
    };
    if outcome == OK {
        // SAFETY: it led to a loan, of which this was one owner.
        unsafe {
            handle.write(std::ptr::null_mut());
            titin_loan_free(given);
        }
    }
    outcome
}

/// # Safety
/// `handle` is NULL or a loan.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_loan_retain(handle: *mut Lending) -> *mut Lending {
    value(std::ptr::null_mut(), || {
        // SAFETY: as the caller promises; what is a loan was made of an `Arc`.
        unsafe {
            loan(handle)?;
            Arc::increment_strong_count(handle);
        }
        Ok(handle)
    })
}

/// # Safety
/// `handle` is NULL or a loan, of which the caller is one owner.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_loan_free(handle: *mut Lending) {
    let _ = status(|| {
        if !handle.is_null() {
            // SAFETY: it came from `Arc::into_raw`, and the caller gives up its share.
            unsafe { Arc::decrement_strong_count(handle.cast_const()) };
        }
        Ok(())
    });
}
