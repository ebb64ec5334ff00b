//! The fields of a run. The manager recorded the declarations of both ends in the profile.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use titin_array::{Bytes, Region, Side};
use titin_manager::profile::{Database, RecordedField};
use titin_model::{PatternSide, listing, nearest};

use super::{FieldCoupling, FieldSide};
use crate::{DrawError, Result};

/// A picture of more fields is too long to be looked through.
const MOST_FIELDS: usize = 50;

/// Whether `path` is a run directory, or a profile.
pub fn is_run(path: &Path) -> bool {
    let mut head = [0; 6];
    path.is_dir()
        || File::open(path)
            .and_then(|mut file| file.read_exact(&mut head))
            .is_ok()
            && head == *b"SQLite"
}

/// All fields of a run. With `port`, only the fields that use `port` at an end. Fields count as
/// alike if they lie between the same two components and their arrays are decomposed alike,
/// whatever the ports and instances. The first of such fields stands for all.
///
/// # Errors
/// The profile cannot be read, or has no such field, or too many.
pub fn recorded_fields(run: &Path, port: Option<&str>) -> Result<Vec<FieldCoupling>> {
    let database = Database::open(run)?;
    let fields = database.fields()?;
    if fields.is_empty() {
        return Err(DrawError::NoFields(run.to_owned()));
    }
    let couplings = without_repeats(fields.iter().filter(|field| uses_port(field, port)))?;
    if couplings.len() > MOST_FIELDS {
        return Err(DrawError::TooManyFields {
            run: run.to_owned(),
            count: couplings.len(),
        });
    }
    match port {
        Some(port) if couplings.is_empty() => Err(no_such_port(run, port, &fields)),
        _ => Ok(couplings),
    }
}

/// Whether a field uses a port. `port` may leave out the index of the instance.
fn uses_port(field: &RecordedField, port: Option<&str>) -> bool {
    let is = |end: &str| port.is_none_or(|port| end == port || without_index(end) == port);
    is(&field.from) || is(&field.to)
}

/// The first of each group of alike fields.
fn without_repeats<'a>(
    fields: impl Iterator<Item = &'a RecordedField>,
) -> Result<Vec<FieldCoupling>> {
    let mut couplings: Vec<FieldCoupling> = Vec::new();
    let mut numbers = HashMap::new();
    for field in fields {
        let number = numbers
            .entry((
                (component(&field.from), component(&field.to)),
                &field.sender,
                &field.receiver,
                &field.sizes,
                format!("{:?}", field.pattern),
            ))
            .or_insert(couplings.len());
        match couplings.get_mut(*number) {
            Some(alike) => alike.more += 1,
            None => couplings.push(coupling(field)?),
        }
    }
    Ok(couplings)
}

fn no_such_port(run: &Path, port: &str, fields: &[RecordedField]) -> DrawError {
    let mut ports: Vec<String> = fields
        .iter()
        .flat_map(|field| [without_index(&field.from), without_index(&field.to)])
        .collect();
    ports.sort_unstable();
    ports.dedup();
    let names = || ports.iter().map(String::as_str);
    DrawError::NoSuchPort {
        run: run.to_owned(),
        port: port.to_owned(),
        ports: listing(names()).to_string(),
        hint: nearest(port, names())
            .map_or_else(String::new, |name| format!("; did you mean \"{name}\"?")),
    }
}

fn coupling(field: &RecordedField) -> Result<FieldCoupling> {
    let pattern = field.pattern.as_ref();
    let sender = pattern.map(|pattern| &pattern.sender);
    let receiver = pattern.map(|pattern| &pattern.receiver);
    Ok(FieldCoupling {
        from: side(&field.from, &field.sender, sender)?,
        to: side(&field.to, &field.receiver, receiver)?,
        bytes: field.sizes.iter().sum(),
        arrays: field.sizes.len(),
        pattern: field.pattern.clone(),
        more: 0,
    })
}

/// A side of a field, from the bytes in the profile.
fn side(port: &str, bytes: &[u8], share: Option<&PatternSide>) -> Result<FieldSide> {
    let bad = |error| DrawError::BadField {
        port: port.to_owned(),
        error,
    };
    let mut side = Side::from_bytes(bytes).map_err(bad)?;
    // A region of the description has precedence over the program's.
    if let Some((lower, upper)) = share.and_then(|share| share.region.as_ref()) {
        side = side.region(Region::new(lower, upper).map_err(|error| bad(error.into()))?);
    }
    Ok(FieldSide {
        port: Some(port.to_owned()),
        side,
        parts: None,
        halo: Vec::new(),
    })
}

/// `micro` of `micro[3].out`.
fn component(end: &str) -> String {
    let name = without_index(end);
    name.rsplit_once('.')
        .map_or(name.clone(), |(component, _)| component.to_owned())
}

/// `micro.out` of `micro[3].out`.
fn without_index(end: &str) -> String {
    let mut depth = 0;
    let mut is_outside = |c: char| {
        depth += i32::from(c == '[');
        let outside = depth == 0;
        depth -= i32::from(c == ']');
        outside
    };
    end.chars().filter(|c| is_outside(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_named_without_the_index_of_their_instance() {
        assert_eq!(
            ["a.out", "a[3].out", "b.c[1][20].in"].map(without_index),
            ["a.out", "a.out", "b.c.in"]
        );
        assert_eq!(
            ["a.out", "a[3].out", "b.c[1][20].in"].map(component),
            ["a", "a", "b.c"]
        );
    }
}
