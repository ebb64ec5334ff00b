//! `titin.splitter`: one message becomes several, which is what a merger with the same settings undoes.
//!
//! Settings: `how` is `concatenate` (pieces along `axis`, of `sizes` or equal), `stack` (one piece for each index of
//! `axis`, without that axis) or `list` (the entries of a list). Pieces go to the out ports and slots in the order of
//! the description.

use titin_runtime::{BuiltIn, Instance, Layout};

use crate::array;
use crate::data::{View, describe, send, view};
use crate::mapper::{self, End, Port, ends};
use crate::merger::How;
use crate::settings::Settings;
use crate::{Error, Result};

pub(crate) const WORDS: [(&str, How); 3] = [
    ("concatenate", How::Concatenate),
    ("stack", How::Stack),
    ("list", How::List),
];

pub(crate) fn run(instance: &Instance) -> Result<()> {
    Settings::new(instance, BuiltIn::Splitter)?;
    mapper::run(instance, |instance, out, taken, stamp| {
        let name = instance.name();
        let [one] = taken else {
            let text = format!(
                "{name}: a splitter has one in port without slots, this one receives {}",
                taken.len()
            );
            return Err(Error::Setting(text));
        };
        let settings = Settings::new(instance, BuiltIn::Splitter)?;
        let how = settings
            .word("", "how", &WORDS)?
            .unwrap_or(How::Concatenate);
        let axis = settings.count("", "axis")?.unwrap_or(0) as usize;
        let sizes = settings
            .find("", "sizes")?
            .map(|value| value.as_ints())
            .transpose()?;
        let wrong = |why: String| {
            Error::Data(format!(
                "{name}: the message on port '{}' cannot be split: {why}",
                one.label()
            ))
        };

        let data = view(&one.message);
        let (fixed, counted) = targets(instance, out);
        let memory;
        let pieces: Vec<View<'_>> = match (&data, how) {
            (View::List(values), How::List) => values.clone(),
            (View::Array(layout, elements), How::Stack) => {
                memory = array::unstack(layout, elements, axis).map_err(wrong)?;
                lend(&memory)
            }
            (View::Array(layout, elements), How::Concatenate) => {
                let sizes = match sizes {
                    Some(sizes) => whole(&sizes).map_err(wrong)?,
                    None if counted.is_none() => equal(layout, axis, fixed.len()).map_err(wrong)?,
                    None => {
                        return Err(Error::Setting(format!(
                            "{name}: the slots of port '{}' are counted by the pieces, so set `sizes`, or `how: stack` for \
                             one piece an index",
                            counted
                                .map(|port| port.info.name.as_str())
                                .unwrap_or_default()
                        )));
                    }
                };
                memory = array::split(layout, elements, axis, &sizes).map_err(wrong)?;
                lend(&memory)
            }
            (other, How::List) => {
                return Err(wrong(format!(
                    "it is {}, and `how: list` takes lists",
                    describe(other)
                )));
            }
            (other, _) => {
                return Err(wrong(format!(
                    "it is {}, no array; `how: list` takes lists apart",
                    describe(other)
                )));
            }
        };
        let ends = assign(instance, &fixed, counted, pieces.len()).map_err(|why| match why {
            Wrong::Count(why) => wrong(why),
            Wrong::Run(error) => error.into(),
        })?;
        for (end, piece) in ends.iter().zip(&pieces) {
            send(instance, end.port, end.slot, piece, stamp)?;
        }
        Ok(())
    })
}

/// The ends that are there, and a port that gets as many slots as are needed.
fn targets<'a>(instance: &Instance, out: &'a [Port]) -> (Vec<End>, Option<&'a Port>) {
    // Ports to which nothing is connected count too: their pieces are dropped, and the others stay where they were.
    let counted = out.iter().find(|port| port.info.resizable);
    let fixed = out
        .iter()
        .filter(|port| !port.info.resizable)
        .flat_map(|port| ends(instance, port))
        .collect();
    (fixed, counted)
}

enum Wrong {
    Count(String),
    Run(titin_runtime::Error),
}

/// The ends that pieces go to, in order; the slots of a port that counts them are set.
fn assign(
    instance: &Instance,
    fixed: &[End],
    counted: Option<&Port>,
    pieces: usize,
) -> Result<Vec<End>, Wrong> {
    let mut all = fixed.to_vec();
    if let Some(port) = counted.filter(|_| pieces >= fixed.len()) {
        instance
            .set_slots(port.id, (pieces - fixed.len()) as u32)
            .map_err(Wrong::Run)?;
        all.extend(ends(instance, port));
    }
    if all.len() != pieces {
        return Err(Wrong::Count(format!(
            "it gives {pieces} pieces, for {} ports and slots",
            all.len()
        )));
    }
    Ok(all)
}

fn lend<'a>(parts: &'a [array::Part<'_>]) -> Vec<View<'a>> {
    parts
        .iter()
        .map(|(layout, bytes)| View::Array(layout.clone(), &bytes[..]))
        .collect()
}

/// A piece may be empty.
fn whole(sizes: &[i64]) -> Result<Vec<u64>, String> {
    let wrong = || format!("of the sizes {sizes:?} one is negative");
    sizes
        .iter()
        .map(|size| u64::try_from(*size).map_err(|_| wrong()))
        .collect()
}

/// Equal sizes for so many pieces.
fn equal(layout: &Layout, axis: usize, pieces: usize) -> Result<Vec<u64>, String> {
    let extent = layout.shape.get(axis).copied().unwrap_or(0);
    let pieces = pieces as u64;
    if pieces == 0 {
        return Err("there is no port to send a piece to".to_owned());
    }
    if !extent.is_multiple_of(pieces) {
        let (small, large) = (extent / pieces, extent / pieces + 1);
        return Err(format!(
            "the extent {extent} of axis {axis} is no multiple of {pieces}, the number of pieces; set `sizes`, for instance \
             to {:?}",
            (0..pieces)
                .map(|piece| if piece < extent % pieces {
                    large
                } else {
                    small
                })
                .collect::<Vec<_>>()
        ));
    }
    Ok(vec![extent / pieces; pieces as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use titin_runtime::{Dtype, StorageOrder};

    #[test]
    fn pieces_are_equal_or_sizes_are_suggested() {
        let layout = Layout::new(Dtype::Float64, StorageOrder::C, [3, 10]);
        assert_eq!(equal(&layout, 1, 5).unwrap(), [2; 5]);
        let why = equal(&layout, 1, 4).unwrap_err();
        assert!(
            why.contains("the extent 10 of axis 1") && why.contains("[3, 3, 2, 2]"),
            "{why}"
        );
        assert!(equal(&layout, 1, 0).unwrap_err().contains("no port"));
        assert_eq!(whole(&[1, 0]).unwrap(), [1, 0]);
        assert_eq!(
            whole(&[1, -1]).unwrap_err(),
            "of the sizes [1, -1] one is negative"
        );
    }
}
