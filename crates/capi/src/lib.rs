//! The C ABI over the runtime: `libtitin`. Every language comes in through this crate;
//! `include/titin.h` is the contract.
//!
//! Each entry point turns the arguments into safe types, calls the runtime, and turns the outcome
//! into a status. No entry point unwinds: a panic becomes `TITIN_ERROR_INTERNAL` with the panic's
//! text. This is the only crate of the workspace with `unsafe` at every call. Each block names the
//! conditions under which the block holds; the header asks the caller to meet these conditions.

mod array;
mod communicator;
mod decomposition;
mod dlpack;
mod elements;
mod error;
mod field;
mod filter;
mod fork;
mod handle;
mod host;
mod input;
mod instance;
mod language;
mod loan;
mod message;
mod mpwide;
mod number;
mod options;
mod path;
mod pointer;
mod port;
mod port_set;
mod ready;
mod receive;
mod region;
mod send;
mod setting;
mod strided;
mod text;
mod value;
