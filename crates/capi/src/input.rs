//! Arguments from C made safe: text, lists, numbers with the meaning "none".

use std::ffi::{CStr, c_char, c_int};
use std::time::Duration;

use titin_runtime::{
    Checks, Dtype, Error, Operator, OverlayUse, Patience, ReceivingRanks, Result, StorageOrder,
};

use crate::error::usage;
use crate::text::Text;

/// Text; NULL is an error.
///
/// # Safety
/// `text` is NULL or ends with a NUL, and does not change while the result lives.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    // SAFETY: as the caller promises.
    unsafe { optional_text(text, what) }?.ok_or_else(|| usage(format!("no {what}: NULL was given")))
}

/// Text, or `None` for NULL.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_text<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: the text ends with a NUL, as the caller promises.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map(Some)
        .map_err(|_| usage(format!("the {what} is not UTF-8: {text:?}")))
}

/// A program's reason for not checking the order of calls. The reason must not be empty.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn reason<'a>(reason: *const c_char) -> Result<&'a str> {
    // SAFETY: as the caller promises.
    let reason = unsafe { text(reason, "reason for not checking") }?;
    if reason.trim().is_empty() {
        return Err(usage(
            "no reason for not checking the order of calls: say why, for whoever reads the run's log",
        ));
    }
    Ok(reason)
}

/// A list of `count` items.
///
/// # Safety
/// `items` is NULL or points to `count` items that do not change while the result lives.
#[inline(always)]
pub(crate) unsafe fn list<'a, T>(items: *const T, count: c_int, what: &str) -> Result<&'a [T]> {
    // SAFETY: as the caller promises.
    unsafe { slice(items, count.into(), what) }
}

/// As [`list`], for a count of 64 bits.
///
/// # Safety
/// As of [`list`].
#[inline(always)]
pub(crate) unsafe fn slice<'a, T>(items: *const T, count: i64, what: &str) -> Result<&'a [T]> {
    let count = checked_count(items.is_null(), count, what)?;
    Ok(match count {
        0 => &[],
        // SAFETY: `count` items are there, as the caller promises.
        count => unsafe { std::slice::from_raw_parts(items, count) },
    })
}

/// The length of a list of the program. NULL is a list without items.
#[inline(always)]
fn checked_count(is_null: bool, count: i64, what: &str) -> Result<usize> {
    if count < 0 || (is_null && count > 0) {
        return Err(wrong_list(is_null, count, what));
    }
    Ok(count as usize)
}

#[cold]
fn wrong_list(is_null: bool, count: i64, what: &str) -> Error {
    usage(match is_null && count > 0 {
        true => format!("NULL was given for {count} {what}"),
        false => format!("{count} {what}"),
    })
}

/// A list of `count` writable items.
///
/// # Safety
/// `items` is NULL or points to `count` writable items, and nobody else uses the items while the
/// result lives.
pub(crate) unsafe fn list_mut<'a, T>(
    items: *mut T,
    count: c_int,
    what: &str,
) -> Result<&'a mut [T]> {
    // SAFETY: as the caller promises.
    unsafe { slice_mut(items, count.into(), what) }
}

/// As [`list_mut`], for a count of 64 bits.
///
/// # Safety
/// As of [`list_mut`].
pub(crate) unsafe fn slice_mut<'a, T>(
    items: *mut T,
    count: i64,
    what: &str,
) -> Result<&'a mut [T]> {
    let count = checked_count(items.is_null(), count, what)?;
    Ok(match count {
        0 => &mut [],
        // SAFETY: `count` items are there, as the caller promises.
        count => unsafe { std::slice::from_raw_parts_mut(items, count) },
    })
}

/// Writes `value` first. `value` stays if the call fails before the call has another value to
/// write.
///
/// # Safety
/// `out` is NULL or may be written to.
pub(crate) unsafe fn preset<T>(out: *mut T, value: T) {
    // SAFETY: as the caller promises.
    if let Some(out) = unsafe { out.as_mut() } {
        *out = value;
    }
}

/// A place to write to.
///
/// # Safety
/// `out` is NULL, or may be written to and is used by nobody else while the result lives.
pub(crate) unsafe fn out<'a, T>(out: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: as the caller promises.
    unsafe { out.as_mut() }
        .ok_or_else(|| usage(format!("NULL was given where {what} is to be written")))
}

/// The number for "no slot".
pub(crate) const NO_SLOT: c_int = -1;

pub(crate) fn slot(slot: c_int, port: &Text) -> Result<Option<u32>> {
    if slot == NO_SLOT {
        return Ok(None);
    }
    // The text leaves the number out, since slots count from 1 in Fortran.
    u32::try_from(slot).map(Some).map_err(|_| {
        let port = port.as_str();
        usage(format!(
            "a slot of port '{port}' below the first: slots count from 0, in Fortran from 1"
        ))
    })
}

pub(crate) fn slot_number(slot: Option<u32>) -> c_int {
    slot.and_then(|slot| c_int::try_from(slot).ok())
        .unwrap_or(NO_SLOT)
}

pub(crate) fn patience(timeout: f64) -> Result<Patience> {
    // In seconds, 31 years: from there on a call waits for ever.
    const EVER: f64 = 1e9;
    match timeout {
        time if time.is_nan() || time < 0.0 => Err(usage(format!(
            "a timeout of {time} seconds: give a number from 0 on, or none (in C TITIN_WAIT) to wait for ever"
        ))),
        time if time >= EVER => Ok(Patience::Forever),
        time => Ok(Patience::For(Duration::from_secs_f64(time))),
    }
}

/// The number for "no next timestamp".
pub(crate) const NO_NEXT: f64 = f64::MIN;

pub(crate) fn next(timestamp: f64) -> Option<f64> {
    (timestamp > NO_NEXT || timestamp.is_nan()).then_some(timestamp)
}

pub(crate) fn dtype(number: c_int) -> Result<Dtype> {
    u8::try_from(number)
        .ok()
        .and_then(Dtype::from_number)
        .ok_or_else(|| {
            usage(format!(
                "there is no dtype {number}; give one of TITIN_BOOL to TITIN_C128"
            ))
        })
}

pub(crate) fn order(number: c_int) -> Result<StorageOrder> {
    match number {
        0 => Ok(StorageOrder::C),
        1 => Ok(StorageOrder::Fortran),
        _ => Err(usage(format!(
            "there is no order {number}; give TITIN_ORDER_C or TITIN_ORDER_FORTRAN"
        ))),
    }
}

pub(crate) fn operator(number: c_int) -> Result<Operator> {
    usize::try_from(number)
        .ok()
        .and_then(|number| Operator::ALL.get(number.wrapping_sub(1)).copied())
        .ok_or_else(|| {
            usage(format!(
                "there is no operator {number}; give one of TITIN_F_INIT to TITIN_O_F"
            ))
        })
}

/// What becomes of calls out of order, by the number in the header.
pub(crate) fn checks(number: c_int) -> Result<Checks> {
    match number {
        0 => Ok(Checks::Error),
        1 => Ok(Checks::Warn),
        _ => Err(usage(format!(
            "checks cannot be {number}; give TITIN_CHECKS_ERROR or TITIN_CHECKS_WARN, or a reason to titin_options_unchecked"
        ))),
    }
}

/// What overlays do, by the number in the header.
pub(crate) fn overlays(number: c_int) -> Result<OverlayUse> {
    match number {
        0 => Ok(OverlayUse::Inherited),
        1 => Ok(OverlayUse::Explicit),
        _ => Err(usage(format!(
            "overlays cannot be {number}; give TITIN_OVERLAYS_INHERITED or TITIN_OVERLAYS_EXPLICIT"
        ))),
    }
}

/// The ranks that get the data of messages, by the number in the header.
pub(crate) fn receiving_ranks(number: c_int) -> Result<ReceivingRanks> {
    match number {
        0 => Ok(ReceivingRanks::All),
        1 => Ok(ReceivingRanks::RootOnly),
        _ => Err(usage(format!(
            "receiving ranks cannot be {number}; give TITIN_RECEIVE_ALL_RANKS or TITIN_RECEIVE_ROOT_ONLY"
        ))),
    }
}

pub(crate) fn operator_number(operator: Operator) -> c_int {
    Operator::ALL
        .iter()
        .position(|other| *other == operator)
        .map_or(0, |index| index as c_int + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_stand_for_something() {
        assert_eq!(next(f64::MIN), None);
        assert_eq!(next(f64::NEG_INFINITY), None);
        assert_eq!(next(-3.0), Some(-3.0));
        assert!(
            next(f64::NAN).unwrap().is_nan(),
            "an accident is not taken for none"
        );
        assert_eq!(patience(f64::MAX).unwrap(), Patience::Forever);
        assert_eq!(
            patience(0.5).unwrap(),
            Patience::For(Duration::from_millis(500))
        );
        assert!(patience(-1.0).is_err() && patience(f64::NAN).is_err());
        let port = Text::new("wide");
        assert_eq!(slot(NO_SLOT, &port).unwrap(), None);
        assert_eq!(slot(0, &port).unwrap(), Some(0));
        assert!(
            slot(-2, &port)
                .unwrap_err()
                .text
                .contains("slot of port 'wide' below the first")
        );
        for operator_ in Operator::ALL {
            assert_eq!(operator(operator_number(operator_)).unwrap(), operator_);
        }
        assert!(
            operator(0).is_err() && dtype(0).is_err() && dtype(16).is_err() && order(2).is_err()
        );
    }
}
