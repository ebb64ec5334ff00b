//! The bytes of descriptions, entries, answers and requests between ranks.
//!
//! All numbers are little-endian. A list begins with the length, of 32 bits; a kind is one byte. A
//! region is the number of dimensions, in one byte, then a lower and an upper bound for each
//! dimension, of 64 bits. Decoders make the checks of the constructors, and never allocate more
//! than a small multiple of the bytes.
//!
//! | type | bytes |
//! | --- | --- |
//! | [`Side`] | order; region; extents of the array; ranks (32 bits); kind 0 regular, 1 boxes, 2 indices; of a regular decomposition the order of the grid, and for each dimension the processes (32 bits) and the spread |
//! | [`Spread`] | kind 0 block, 1 even, 2 bounds, 3 cyclic; a list of bounds; the block of cyclic |
//! | [`Ownership`] | kind 0 rule, 1 boxes, 2 indices; a list of regions; a list of ranges |
//! | [`IndexRange`] | first, length |
//! | [`ElementRequest`] | kind 0 part, 1 boxes, 2 ranges; the list |
//! | [`DirectoryEntries`] | kind 1 boxes, 2 ranges; a list of place (32 bits) and region; a list of ranges |
//! | [`DirectoryAnswer`] | kind 1 boxes, 2 ranges; a list of rank (32 bits), place (32 bits), region; a list of rank and range |

use crate::decomposition::Rule;
use crate::{
    Decomposition, Dims, DirectoryAnswer, DirectoryEntries, ElementRequest, Error, IndexRange,
    MOST_DIMS, Order, OwnedBox, Ownership, Region, Side, Spread,
};

/// A value with a form in bytes.
pub trait Bytes: Sized {
    /// Appends the bytes.
    fn write(&self, bytes: &mut Vec<u8>);

    /// Takes the value from the front of the bytes.
    fn read(bytes: &mut &[u8]) -> Result<Self, Error>;

    /// The bytes of the value.
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        bytes
    }

    /// The value of all bytes; bytes left over are refused.
    fn from_bytes(mut bytes: &[u8]) -> Result<Self, Error> {
        let value = Self::read(&mut bytes)?;
        if bytes.is_empty() {
            Ok(value)
        } else {
            Err(broken("has bytes left over"))
        }
    }
}

fn broken(why: &str) -> Error {
    Error::Broken(format!("a message about a decomposition {why}"))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], Error> {
    let (front, rest) = bytes
        .split_at_checked(count)
        .ok_or_else(|| broken("ends too early"))?;
    *bytes = rest;
    Ok(front)
}

fn wrong_kind<T>(kind: u8) -> Result<T, Error> {
    Err(broken(&format!("has an unknown kind, {kind}")))
}

macro_rules! number {
    ($type:ty) => {
        impl Bytes for $type {
            fn write(&self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }

            fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
                let front = take(bytes, size_of::<Self>())?;
                Ok(Self::from_le_bytes(
                    front.try_into().expect("as long as the number"),
                ))
            }
        }
    };
}

number!(u8);
number!(u32);
number!(u64);

impl<T: Bytes> Bytes for Vec<T> {
    fn write(&self, bytes: &mut Vec<u8>) {
        (self.len() as u32).write(bytes);
        self.iter().for_each(|one| one.write(bytes));
    }

    /// The list grows as items are read. Each item takes bytes, so a false length leads to no
    /// allocation.
    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        (0..u32::read(bytes)?)
            .map(|_| T::read(bytes))
            .collect::<Result<_, _>>()
    }
}

impl<A: Bytes, B: Bytes> Bytes for (A, B) {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.0.write(bytes);
        self.1.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        Ok((A::read(bytes)?, B::read(bytes)?))
    }
}

impl Bytes for Order {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self == Order::Fortran));
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        match u8::read(bytes)? {
            0 => Ok(Order::C),
            1 => Ok(Order::Fortran),
            kind => wrong_kind(kind),
        }
    }
}

impl Bytes for Dims {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.len() as u8);
        self.iter().for_each(|value| value.write(bytes));
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        let mut dims = Dims::all(dimensions(bytes)?, 0);
        for value in dims.iter_mut() {
            *value = u64::read(bytes)?;
        }
        Ok(dims)
    }
}

fn dimensions(bytes: &mut &[u8]) -> Result<usize, Error> {
    let count = usize::from(u8::read(bytes)?);
    if count > MOST_DIMS {
        Err(broken(&format!("has {count} dimensions")))
    } else {
        Ok(count)
    }
}

impl Bytes for Region {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.lower().len() as u8);
        for (lower, upper) in self.lower().iter().zip(self.upper().iter()) {
            lower.write(bytes);
            upper.write(bytes);
        }
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        let count = dimensions(bytes)?;
        let (mut lower, mut upper) = (Dims::all(count, 0), Dims::all(count, 0));
        for dim in 0..count {
            (lower[dim], upper[dim]) = <(u64, u64)>::read(bytes)?;
        }
        Region::new(&lower, &upper).map_err(|error| broken(&format!("has {error}")))
    }
}

impl Bytes for IndexRange {
    fn write(&self, bytes: &mut Vec<u8>) {
        (self.first, self.length).write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        let (first, length) = <(u64, u64)>::read(bytes)?;
        Ok(IndexRange { first, length })
    }
}

impl Bytes for OwnedBox {
    fn write(&self, bytes: &mut Vec<u8>) {
        (self.rank, self.place).write(bytes);
        self.region.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        let (rank, place) = <(u32, u32)>::read(bytes)?;
        Ok(OwnedBox {
            rank,
            place,
            region: Region::read(bytes)?,
        })
    }
}

impl Bytes for Spread {
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Spread::Block => 0u8.write(bytes),
            Spread::Even => 1u8.write(bytes),
            Spread::Bounds(bounds) => {
                2u8.write(bytes);
                bounds.write(bytes);
            }
            Spread::Cyclic(block) => (3u8, *block).write(bytes),
        }
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        Ok(match u8::read(bytes)? {
            0 => Spread::Block,
            1 => Spread::Even,
            2 => Spread::Bounds(Vec::read(bytes)?),
            3 => Spread::Cyclic(u64::read(bytes)?),
            kind => return wrong_kind(kind),
        })
    }
}

impl Bytes for Side {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.order.write(bytes);
        self.region.write(bytes);
        self.decomposition.write(bytes);
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        let (order, region) = <(Order, Region)>::read(bytes)?;
        Ok(Side {
            decomposition: Decomposition::read(bytes)?,
            region,
            order,
        })
    }
}

impl Bytes for Decomposition {
    fn write(&self, bytes: &mut Vec<u8>) {
        self.shape().write(bytes);
        self.ranks().write(bytes);
        match &self.rule {
            Rule::Regular(grid) => {
                0u8.write(bytes);
                grid.order.write(bytes);
                for dimension in &grid.dimensions {
                    dimension.procs.write(bytes);
                    dimension.spread.write(bytes);
                }
            }
            Rule::Boxes => 1u8.write(bytes),
            Rule::Indices => 2u8.write(bytes),
        }
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        let (shape, ranks) = <(Dims, u32)>::read(bytes)?;
        let decomposition = match u8::read(bytes)? {
            0 => {
                let order = Order::read(bytes)?;
                let (mut grid, mut spreads) = (Vec::new(), Vec::new());
                for _ in 0..shape.len() {
                    grid.push(u32::read(bytes)?);
                    spreads.push(Spread::read(bytes)?);
                }
                Decomposition::regular(&shape, &grid, &spreads, order, ranks)
            }
            1 => Decomposition::boxes(&shape, ranks),
            2 => Decomposition::indices(&shape, ranks),
            kind => return wrong_kind(kind),
        };
        decomposition.map_err(|error| broken(&format!("cannot be: {error}")))
    }
}

impl Bytes for Ownership {
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Ownership::Rule => 0u8.write(bytes),
            Ownership::Boxes(boxes) => {
                1u8.write(bytes);
                boxes.write(bytes);
            }
            Ownership::Indices(ranges) => {
                2u8.write(bytes);
                ranges.write(bytes);
            }
        }
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        Ok(match u8::read(bytes)? {
            0 => Ownership::Rule,
            1 => Ownership::Boxes(Vec::read(bytes)?),
            2 => Ownership::Indices(Vec::read(bytes)?),
            kind => return wrong_kind(kind),
        })
    }
}

impl Bytes for ElementRequest {
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            ElementRequest::Part => 0u8.write(bytes),
            ElementRequest::Boxes(boxes) => {
                1u8.write(bytes);
                boxes.write(bytes);
            }
            ElementRequest::Ranges(ranges) => {
                2u8.write(bytes);
                ranges.write(bytes);
            }
        }
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        Ok(match u8::read(bytes)? {
            0 => ElementRequest::Part,
            1 => ElementRequest::Boxes(Vec::read(bytes)?),
            2 => ElementRequest::Ranges(Vec::read(bytes)?),
            kind => return wrong_kind(kind),
        })
    }
}

impl Bytes for DirectoryEntries {
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            DirectoryEntries::Boxes(boxes) => {
                1u8.write(bytes);
                boxes.write(bytes);
            }
            DirectoryEntries::Ranges(ranges) => {
                2u8.write(bytes);
                ranges.write(bytes);
            }
        }
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        Ok(match u8::read(bytes)? {
            1 => DirectoryEntries::Boxes(Vec::read(bytes)?),
            2 => DirectoryEntries::Ranges(Vec::read(bytes)?),
            kind => return wrong_kind(kind),
        })
    }
}

impl Bytes for DirectoryAnswer {
    fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            DirectoryAnswer::Boxes(boxes) => {
                1u8.write(bytes);
                boxes.write(bytes);
            }
            DirectoryAnswer::Ranges(ranges) => {
                2u8.write(bytes);
                ranges.write(bytes);
            }
        }
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, Error> {
        Ok(match u8::read(bytes)? {
            1 => DirectoryAnswer::Boxes(Vec::read(bytes)?),
            2 => DirectoryAnswer::Ranges(Vec::read(bytes)?),
            kind => return wrong_kind(kind),
        })
    }
}
