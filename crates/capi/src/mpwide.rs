//! The calls of MPWide over paths: what `mpwide/MPWide.h` calls.
//!
//! A program of MPWide knows its connections by numbers. `MPW_Init` makes *channels*: each is a path of titin with one
//! stream. `MPW_CreatePath` makes a *path*, which is one path of titin with several streams, and gives each stream the
//! number of a channel, too.
//!
//! MPWide ends the program on an error, and so do these calls: with one line that says what failed. The calls that
//! return a status return -1 instead.

mod area;
mod begin;
mod calls;
mod connection;
mod dynamic;
mod end;
mod exchanges;
mod meeting;
mod memory;
mod settings;
mod table;
mod transfer;

use std::ffi::c_int;

use titin_runtime::{Error, Result};

use crate::error::caught;

/// A call that ends the program on an error.
fn ending<T>(call: &str, body: impl FnOnce() -> Result<T>) -> T {
    attempt(body).unwrap_or_else(|why| {
        complain(call, &why);
        end::end_program()
    })
}

/// A call that returns a number, or prints the error and returns -1.
fn number(call: &str, body: impl FnOnce() -> Result<c_int>) -> c_int {
    attempt(body).unwrap_or_else(|why| {
        complain(call, &why);
        -1
    })
}

fn attempt<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(|| {
        titin_runtime::not_forked()?;
        body()
    })
}

fn complain(call: &str, why: &Error) {
    eprintln!("MPWide: {call}: {}", why.text);
}
