//! Loans: memory that a program fills. titin sends the memory without a copy.

use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use titin_runtime::{Dtype, LayoutRef, Lent, Loan, Payload, Result};

use crate::array;
use crate::error::{OK, keep, null, status, usage, value};
use crate::handle::{Port, on_port};
use crate::input;
use crate::send::{SendArguments, send};
use crate::value::Value;

/// The `titin_loan` of the header, shared by the owners.
pub(crate) struct LoanHandle {
    state: Mutex<LoanState>,
    /// The address of the data.
    data: usize,
}

enum LoanState {
    /// The program writes to the memory.
    Filling(Loan),
    /// The loan was handed to a send, and does not change any more.
    Frozen(Lent),
    /// Between the two, while `freeze` runs.
    Between,
}

/// The address and number of bytes of each loan with an owner, by the address of the loan's data.
/// The map serves languages in which an array is no more than the array's memory.
static LOANS: LazyLock<Mutex<HashMap<usize, (usize, usize)>>> = LazyLock::new(Mutex::default);

impl LoanHandle {
    fn new(mut loan: Loan) -> Arc<Self> {
        let (data, bytes) = (
            loan.bytes_mut().as_mut_ptr() as usize,
            loan.bytes_mut().len(),
        );
        let handle = Arc::new(LoanHandle {
            state: Mutex::new(LoanState::Filling(loan)),
            data,
        });
        let loans = LOANS.lock();
        let address = Arc::as_ptr(&handle) as usize;
        loans
            .unwrap_or_else(PoisonError::into_inner)
            .insert(data, (address, bytes));
        handle
    }

    fn state(&self) -> MutexGuard<'_, LoanState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the filling of the memory, if the program still fills the memory.
    fn freeze(&self) -> Lent {
        let mut state = self.state();
        let lent = match std::mem::replace(&mut *state, LoanState::Between) {
            LoanState::Filling(mut loan) => {
                if loan.layout().dtype == Dtype::Bool {
                    array::make_bools(loan.bytes_mut());
                }
                loan.finish()
            }
            LoanState::Frozen(lent) => lent,
            LoanState::Between => unreachable!("nothing fails between"),
        };
        *state = LoanState::Frozen(lent.clone());
        lent
    }
}

impl Drop for LoanHandle {
    fn drop(&mut self) {
        // In a forked child, a thread of the parent may hold the lock; the child has no copy of
        // such a thread.
        if titin_runtime::not_forked().is_err() {
            return;
        }
        let mut loans = LOANS.lock().unwrap_or_else(PoisonError::into_inner);
        // Several loans without bytes may have the same address.
        if loans
            .get(&self.data)
            .is_some_and(|(address, _)| *address == (&raw const *self) as usize)
        {
            loans.remove(&self.data);
        }
    }
}

/// The loan behind a handle.
///
/// # Safety
/// `handle` is NULL or a loan that is not freed while the result is used.
unsafe fn loan<'a>(handle: *const LoanHandle) -> Result<&'a LoanHandle> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_ref() }.ok_or_else(|| null("loan", "titin_loan_new"))
}

/// # Safety
/// `port` is NULL or a port; `extents` and `names` are NULL or have `rank` entries; `loan` is NULL
/// or may be written.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_loan_new(
    port: *mut Port,
    slot: c_int,
    dtype: c_int,
    rank: c_int,
    extents: *const i64,
    order: c_int,
    names: *const *const c_char,
    loan: *mut *mut LoanHandle,
) -> c_int {
    if loan.is_null() {
        return keep(usage("NULL was given where the loan was to be written"));
    }
    // SAFETY: not NULL, so the caller allows writing.
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
            loan.write(Arc::into_raw(LoanHandle::new(lent)).cast_mut());
            Ok(())
        })
    }
}

/// # Safety
/// `handle` is NULL or a loan.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_loan_data(handle: *mut LoanHandle) -> *mut c_void {
    value(std::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        match &mut *unsafe { loan(handle) }?.state() {
            LoanState::Filling(loan) => Ok(loan.bytes_mut().as_mut_ptr().cast()),
            _ => Err(usage(
                "this loan was handed to a send, so its data do not change any more: send it, or ask for another one",
            )),
        }
    })
}

/// # Safety
/// `data` is any pointer; if the pointer leads to a loan, the loan is not freed meanwhile.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_loan_find(data: *const c_void, nbytes: i64) -> *mut LoanHandle {
    value(std::ptr::null_mut(), || {
        let loans = LOANS.lock().unwrap_or_else(PoisonError::into_inner);
        match loans.get(&(data as usize)) {
            None => Err(usage(
                "no loan has its data here: it was sent or given back, or this is memory of the program's own",
            )),
            Some((_, bytes)) if *bytes as i64 != nbytes => Err(usage(format!(
                "a part of a loan, {nbytes} bytes of {bytes}: loans are sent whole"
            ))),
            Some((address, _)) => Ok(*address as *mut LoanHandle),
        }
    })
}

/// # Safety
/// `port` is NULL or a port; `handle` is NULL or points to NULL or a loan; `settings` is NULL or a
/// value.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_send_loan(
    port: *mut Port,
    slot: c_int,
    handle: *mut *mut LoanHandle,
    timestamp: f64,
    next: f64,
    settings: *const Value,
) -> c_int {
    // SAFETY: as the caller promises.
    let given = unsafe { handle.as_ref() }.map_or(std::ptr::null_mut(), |given| *given);
    let with = SendArguments {
        slot,
        timestamp,
        next,
        settings,
    };
    // SAFETY: as the caller promises.
    let outcome = unsafe {
        on_port(port, |port| {
            let lent = loan(given)?.freeze();
            send(port, &Payload::lent(&lent), &with)
        })
    };
    if outcome == OK {
        // SAFETY: the handle led to a loan, and the caller was an owner of the loan.
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
unsafe extern "C" fn titin_loan_retain(handle: *mut LoanHandle) -> *mut LoanHandle {
    value(std::ptr::null_mut(), || {
        // SAFETY: as the caller promises; each loan was made of an `Arc`.
        unsafe {
            loan(handle)?;
            Arc::increment_strong_count(handle);
        }
        Ok(handle)
    })
}

/// # Safety
/// `handle` is NULL or a loan, and the caller is an owner of the loan.
#[unsafe(no_mangle)]
unsafe extern "C" fn titin_loan_free(handle: *mut LoanHandle) {
    let _ = status(|| {
        if !handle.is_null() {
            // SAFETY: the handle came from `Arc::into_raw`, and the caller gives up the share.
            unsafe { Arc::decrement_strong_count(handle.cast_const()) };
        }
        Ok(())
    });
}
