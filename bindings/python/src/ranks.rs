//! The communicator of a parallel program: a communicator of mpi4py, or an object with the same
//! four methods.

use std::ffi::{c_int, c_void};
use std::sync::Mutex;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::{error, sys};

/// The communicator. libtitin calls the communicator while an instance is opened.
pub struct Ranks {
    comm: Py<PyAny>,
    rank: c_int,
    ranks: c_int,
    /// The exception of the communicator.
    raised: Mutex<Option<PyErr>>,
}

impl Ranks {
    /// The ranks of a communicator; in a box, since libtitin keeps the address.
    pub fn new(comm: &Bound<'_, PyAny>) -> PyResult<Box<Self>> {
        let py = comm.py();
        let ask = |method| -> PyResult<c_int> { comm.call_method0(method)?.extract() };
        let missing = |raised: PyErr| {
            let text = format!(
                "comm takes a communicator of mpi4py, or an object with its Get_rank, Get_size, bcast and gather: {raised}"
            );
            error::mismatch(py, text)
        };
        let rank = ask(intern!(py, "Get_rank")).map_err(missing)?;
        let ranks = ask(intern!(py, "Get_size")).map_err(missing)?;
        Ok(Box::new(Ranks {
            comm: comm.clone().unbind(),
            rank,
            ranks,
            raised: Mutex::default(),
        }))
    }

    /// Gives the communicator to options. The options must be used no longer than the communicator
    /// lives.
    pub fn offer(&self, py: Python<'_>, options: *mut sys::titin_options) -> PyResult<()> {
        let communicator = sys::titin_communicator {
            size: size_of::<sys::titin_communicator>(),
            rank: self.rank,
            ranks: self.ranks,
            context: (&raw const *self).cast::<c_void>().cast_mut(),
            broadcast: Some(broadcast),
            gather: Some(gather),
        };
        // SAFETY: the communicator is copied; libtitin calls the functions as long as the options
        // are used.
        error::check(py, unsafe {
            sys::titin_options_communicator(options, &communicator)
        })
    }

    /// Takes the exception of the communicator, if there is an exception.
    pub fn raised(&self) -> Option<PyErr> {
        self.raised
            .lock()
            .expect("nothing panics while it is locked")
            .take()
    }

    fn call(&self, act: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) -> c_int {
        let called = Python::attach(|py| act(self.comm.bind(py)));
        let Err(raised) = called else { return 0 };
        *self
            .raised
            .lock()
            .expect("nothing panics while it is locked") = Some(raised);
        1
    }
}

/// # Safety
/// `context` is a `Ranks`; `bytes` has `count` writable bytes.
unsafe extern "C" fn broadcast(context: *mut c_void, bytes: *mut c_void, count: i64) -> c_int {
    // SAFETY: as the caller promises.
    let (ranks, bytes) = unsafe {
        (
            &*context.cast::<Ranks>(),
            std::slice::from_raw_parts_mut(bytes.cast::<u8>(), count as usize),
        )
    };
    ranks.call(|comm| {
        let py = comm.py();
        let mine = if ranks.rank == 0 {
            PyBytes::new(py, bytes).into_any()
        } else {
            py.None().into_bound(py)
        };
        let told = comm.call_method1(intern!(py, "bcast"), (mine, 0))?;
        copy(told.cast::<PyBytes>()?.as_bytes(), bytes, py)
    })
}

/// # Safety
/// `context` is a `Ranks`; `mine` has `count` bytes. At rank 0, `all` has `count` writable bytes
/// for each rank.
unsafe extern "C" fn gather(
    context: *mut c_void,
    mine: *const c_void,
    all: *mut c_void,
    count: i64,
) -> c_int {
    let count = count as usize;
    // SAFETY: as the caller promises.
    let (ranks, mine) = unsafe {
        (
            &*context.cast::<Ranks>(),
            std::slice::from_raw_parts(mine.cast::<u8>(), count),
        )
    };
    ranks.call(|comm| {
        let py = comm.py();
        let gathered = comm.call_method1(intern!(py, "gather"), (PyBytes::new(py, mine), 0))?;
        if ranks.rank != 0 || count == 0 {
            return Ok(());
        }
        // SAFETY: as the caller promises.
        let all = unsafe {
            std::slice::from_raw_parts_mut(all.cast::<u8>(), count * ranks.ranks as usize)
        };
        let mut each = gathered.cast::<PyList>()?.iter().zip(all.chunks_mut(count));
        each.try_for_each(|(told, room)| copy(told.cast::<PyBytes>()?.as_bytes(), room, py))
    })
}

fn copy(from: &[u8], to: &mut [u8], py: Python<'_>) -> PyResult<()> {
    if from.len() != to.len() {
        let text = format!(
            "the communicator has given {} bytes where {} were told",
            from.len(),
            to.len()
        );
        return Err(error::usage(py, text));
    }
    to.copy_from_slice(from);
    Ok(())
}
