//! Decompositions: how the array of a field is spread over ranks, from `titin.fields` to libtitin.

use std::ffi::c_int;
use std::ptr::NonNull;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::array::Array;
use crate::{error, sys};

/// Lower and upper indices of a box, or the widths of a halo below and above.
pub type Bounds = (Vec<i64>, Vec<i64>);

/// A decomposition of libtitin.
pub struct Decomposition {
    handle: NonNull<sys::titin_decomposition>,
    dims: usize,
}

impl Drop for Decomposition {
    fn drop(&mut self) {
        // SAFETY: the decomposition is ours.
        unsafe { sys::titin_decomposition_free(self.as_ptr()) }
    }
}

impl Decomposition {
    /// The decomposition of an array of extents `shape`. At first, rank 0 owns all of the array.
    pub fn new(py: Python<'_>, shape: &[i64]) -> PyResult<Self> {
        let dims = shape.len();
        // SAFETY: the shape has `dims` entries.
        let handle = unsafe { sys::titin_decomposition_new(dims as c_int, shape.as_ptr()) };
        let handle = NonNull::new(handle).ok_or_else(|| error::last(py))?;
        Ok(Decomposition { handle, dims })
    }

    pub fn as_ptr(&self) -> *mut sys::titin_decomposition {
        self.handle.as_ptr()
    }

    pub fn set_order(&self, py: Python<'_>, order: c_int) -> PyResult<()> {
        // SAFETY: the decomposition lives.
        error::check(py, unsafe {
            sys::titin_decomposition_order(self.as_ptr(), order)
        })
    }

    /// Sets the widths of the halo. `titin.fields` gives a width for each dimension.
    pub fn set_halo(&self, py: Python<'_>, (below, above): &Bounds) -> PyResult<()> {
        // SAFETY: the decomposition lives, and each list has an entry for each dimension.
        error::check(py, unsafe {
            sys::titin_decomposition_halo(self.as_ptr(), below.as_ptr(), above.as_ptr())
        })
    }

    pub fn set_region(&self, py: Python<'_>, region: &Bounds) -> PyResult<()> {
        self.check_dims(py, region)?;
        let (lower, upper) = region;
        // SAFETY: the decomposition lives, and there are as many bounds as dimensions.
        error::check(py, unsafe {
            sys::titin_decomposition_region(self.as_ptr(), lower.as_ptr(), upper.as_ptr())
        })
    }

    /// Sets the part of this rank; `described` comes from `titin.fields.describe`. Returns whether
    /// the rank's array has as many dimensions as the whole array.
    pub fn set_owned(&self, described: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = described.py();
        let (kind, owned, spreads, ranks) =
            described
                .extract::<(String, Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
        match kind.as_str() {
            "grid" => {
                self.set_grid(py, &owned.extract::<Vec<c_int>>()?)?;
                for (dim, spread) in spreads.try_iter()?.enumerate() {
                    self.set_spread(dim as c_int, &spread?)?;
                }
                if ranks.extract::<String>()? == "F" {
                    self.set_fortran_ranks(py)?;
                }
                Ok(true)
            }
            "boxes" => {
                let boxes: Vec<Bounds> = owned.extract()?;
                boxes.iter().try_for_each(|one| self.add_box(py, one))?;
                Ok(boxes.len() == 1)
            }
            _ => self.set_indices(&owned).map(|()| false),
        }
    }

    /// Sets the number of processes along each dimension. `titin.fields` gives a number for each
    /// dimension.
    fn set_grid(&self, py: Python<'_>, processes: &[c_int]) -> PyResult<()> {
        // SAFETY: the decomposition lives, and there is an entry for each dimension.
        error::check(py, unsafe {
            sys::titin_decomposition_grid(self.as_ptr(), processes.as_ptr())
        })
    }

    /// Numbers the ranks of the grid in Fortran order.
    fn set_fortran_ranks(&self, py: Python<'_>) -> PyResult<()> {
        // SAFETY: the decomposition lives.
        error::check(py, unsafe {
            sys::titin_decomposition_ranks(self.as_ptr(), sys::ORDER_FORTRAN)
        })
    }

    /// Sets the spread of a dimension: a pair of kind and block size, or the bounds of the blocks.
    fn set_spread(&self, dim: c_int, spread: &Bound<'_, PyAny>) -> PyResult<()> {
        let status = match spread.extract::<(c_int, i64)>() {
            // SAFETY: the decomposition lives.
            Ok((kind, block)) if spread.is_instance_of::<PyTuple>() => unsafe {
                sys::titin_decomposition_spread(self.as_ptr(), dim, kind, block)
            },
            _ => {
                let bounds: Vec<i64> = spread.extract()?;
                let count = bounds.len() as c_int;
                // SAFETY: the decomposition lives, and there are as many bounds as said.
                unsafe {
                    sys::titin_decomposition_bounds(self.as_ptr(), dim, count, bounds.as_ptr())
                }
            }
        };
        error::check(spread.py(), status)
    }

    fn add_box(&self, py: Python<'_>, bounds: &Bounds) -> PyResult<()> {
        self.check_dims(py, bounds)?;
        let (lower, upper) = bounds;
        // SAFETY: the decomposition lives, and there are as many bounds as dimensions.
        error::check(py, unsafe {
            sys::titin_decomposition_box(self.as_ptr(), lower.as_ptr(), upper.as_ptr())
        })
    }

    fn set_indices(&self, numbers: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = numbers.py();
        let numbers = Array::to_send(numbers)?;
        let count = if numbers.rank() == 1 {
            // SAFETY: an array of rank 1 has a single extent.
            unsafe { *numbers.extents() }
        } else {
            0
        };
        // SAFETY: the decomposition lives, and the array has `count` elements.
        error::check(py, unsafe {
            sys::titin_decomposition_indices(self.as_ptr(), count, numbers.data().cast())
        })
    }

    /// Fails unless there are as many bounds as dimensions.
    fn check_dims(&self, py: Python<'_>, (lower, upper): &Bounds) -> PyResult<()> {
        let dims = self.dims;
        match [lower.len(), upper.len()]
            .iter()
            .find(|length| **length != dims)
        {
            None => Ok(()),
            Some(odd) => Err(error::usage(
                py,
                format!("a box with {odd} bounds in an array of {dims} dimensions"),
            )),
        }
    }
}
