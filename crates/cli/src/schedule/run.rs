//! Fields of a run, as both ends declared them: the manager has kept that in the profile.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use titin_array::{Bytes, Error, Region, Side};
use titin_manager::profile::{Database, Field};
use titin_model::{PatternSide, listing, nearest};

use super::{Coupling, End};

/// With more fields a picture is too long to be looked through.
const MOST_FIELDS: usize = 50;

/// Fields between the same two components, spread alike, are drawn once, whatever their ports and instances: the first of them, and
/// how many others there are.
pub(crate) struct Alike {
    pub(crate) coupling: Coupling,
    pub(crate) more: usize,
}

/// Whether this is a run directory, or a profile.
pub(crate) fn is_run(path: &Path) -> bool {
    let mut head = [0; 6];
    path.is_dir()
        || File::open(path)
            .and_then(|mut file| file.read_exact(&mut head))
            .is_ok()
            && head == *b"SQLite"
}

/// All fields of a run, or those with this port at one end.
pub(crate) fn couplings(run: &Path, port: Option<&str>) -> Result<Vec<Alike>, String> {
    let fields = Database::open(run)?.fields()?;
    if fields.is_empty() {
        return Err(format!(
            "{} has no fields: at no conduit both ends have declared one. To draw a schedule before there is a program, give \
             both sides: titin plot --schedule 'from: {{shape: [8, 12], grid: [4, 1]}}' 'to: {{grid: [2, 2]}}'",
            run.display()
        ));
    }
    let wanted = |field: &&Field| {
        let is = |end: &str| port.is_none_or(|port| end == port || without_index(end) == port);
        is(&field.from) || is(&field.to)
    };
    let mut found: Vec<Alike> = Vec::new();
    let mut places = HashMap::new();
    for field in fields.iter().filter(wanted) {
        let components = (component(&field.from), component(&field.to));
        let place = places
            .entry((
                components,
                &field.sender,
                &field.receiver,
                &field.sizes,
                format!("{:?}", field.pattern),
            ))
            .or_insert(found.len());
        match found.get_mut(*place) {
            Some(alike) => alike.more += 1,
            None => found.push(Alike {
                coupling: coupling(field)?,
                more: 0,
            }),
        }
    }
    if found.len() > MOST_FIELDS {
        return Err(format!(
            "{} has {} fields that are not alike, too many for one picture: choose one with --field COMPONENT.PORT",
            run.display(),
            found.len()
        ));
    }
    if let Some(port) = port.filter(|_| found.is_empty()) {
        let mut ports: Vec<String> = fields
            .iter()
            .flat_map(|field| [without_index(&field.from), without_index(&field.to)])
            .collect();
        ports.sort_unstable();
        ports.dedup();
        let names = || ports.iter().map(String::as_str);
        let hint = nearest(port, names())
            .map_or_else(String::new, |name| format!("; did you mean \"{name}\"?"));
        return Err(format!(
            "no field goes by a port \"{port}\" of {}: there are {}{hint}",
            run.display(),
            listing(names())
        ));
    }
    Ok(found)
}

fn coupling(field: &Field) -> Result<Coupling, String> {
    let end = |port: &String, bytes: &[u8], share: Option<&PatternSide>| -> Result<End, String> {
        let wrong = |error: Error| format!("the profile has no good field at {port}: {error}");
        let mut side = Side::from_bytes(bytes).map_err(wrong)?;
        // The description may couple another region than the program.
        if let Some((lower, upper)) = share.and_then(|share| share.region.as_ref()) {
            side = side.region(Region::new(lower, upper).map_err(wrong)?);
        }
        Ok(End {
            port: Some(port.clone()),
            side,
            parts: None,
            halo: Vec::new(),
        })
    };
    let pattern = field.pattern.as_ref();
    Ok(Coupling {
        from: end(
            &field.from,
            &field.sender,
            pattern.map(|pattern| &pattern.sender),
        )?,
        to: end(
            &field.to,
            &field.receiver,
            pattern.map(|pattern| &pattern.receiver),
        )?,
        bytes: field.sizes.iter().sum(),
        arrays: field.sizes.len(),
        pattern: field.pattern.clone(),
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
    let mut outside = |c: char| {
        depth += i32::from(c == '[');
        let kept = depth == 0;
        depth -= i32::from(c == ']');
        kept
    };
    end.chars().filter(|c| outside(*c)).collect()
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
