//! The C ABI over the runtime: `libtitin`. Every language comes in through it; `include/titin.h` is its contract.
//!
//! Each entry point turns what C hands in into safe types, calls the runtime, and turns the outcome into a status. It
//! never unwinds: a panic becomes `TITIN_ERROR_INTERNAL` with its text. This is the one crate of the workspace with
//! `unsafe` at every call; each block says what it relies on, which is what the header asks of the caller.

mod array;
mod communicator;
mod decomposition;
mod error;
mod field;
mod filter;
mod fork;
mod handle;
mod host;
mod input;
mod instance;
mod loan;
mod message;
mod options;
mod port;
mod ready;
mod receive;
mod region;
mod send;
mod setting;
mod strided;
mod text;
mod value;
