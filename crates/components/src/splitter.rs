//! `titin.splitter`: splits a message into several. A merger with the same settings joins the parts
//! again.
//!
//! Settings: `how` is `concatenate` (parts along `axis`, of `sizes` or of equal size), `stack` (a
//! part for each index of `axis`, without that axis) or `list` (the entries of a list). The parts
//! go to the out ports and slots in the order of the description.

use titin_runtime::{BuiltIn, Instance, Layout};

use crate::array_joining::{self, ArrayError, ArrayPart};
use crate::data::{View, describe, send, view};
use crate::mapper::{self, InstancePort, PortOrSlot, ReceivedMessage, ends};
use crate::merger::JoinMode;
use crate::settings::ComponentSettings;
use crate::{Error, Result};

pub(crate) const WORDS: [(&str, JoinMode); 3] = [
    ("concatenate", JoinMode::Concatenate),
    ("stack", JoinMode::Stack),
    ("list", JoinMode::List),
];

pub(crate) fn run(instance: &Instance) -> Result<()> {
    ComponentSettings::new(instance, BuiltIn::Splitter)?;
    mapper::run(instance, |instance, out, received, meta| {
        let received = only_message(instance, received)?;
        let refuse = |error: SplitError| error.in_message(instance.name(), &received.label());
        let split = Split::new(instance)?;
        let targets = Targets::of(instance, out);
        let data = view(&received.message);
        let parts = split.parts(&data, &targets).map_err(refuse)?;
        let views = parts.views();
        let ends = targets.assign(instance, views.len()).map_err(refuse)?;
        for (end, part) in ends.iter().zip(&views) {
            send(instance, end.port, end.slot, part, meta)?;
        }
        Ok(())
    })
}

fn only_message<'a>(
    instance: &Instance,
    received: &'a [ReceivedMessage],
) -> Result<&'a ReceivedMessage> {
    match received {
        [message] => Ok(message),
        messages => Err(Error::Setting(format!(
            "{}: a splitter has one in port without slots, this one receives {}",
            instance.name(),
            messages.len()
        ))),
    }
}

/// Why a message cannot be split.
#[derive(Debug, thiserror::Error)]
enum SplitError {
    #[error(transparent)]
    Join(#[from] ArrayError),
    #[error("of the sizes {0:?} one is negative")]
    NegativeSize(Vec<i64>),
    #[error("there is no port to send a piece to")]
    NoPort,
    #[error(
        "the extent {extent} of axis {axis} is no multiple of {pieces}, the number of pieces; set `sizes`, for instance \
         to {suggested:?}"
    )]
    Indivisible {
        extent: u64,
        axis: usize,
        pieces: u64,
        suggested: Vec<u64>,
    },
    #[error("it is {0}, and `how: list` takes lists")]
    NoList(String),
    #[error("it is {0}, no array; `how: list` takes lists apart")]
    NoArray(String),
    #[error("it gives {pieces} pieces, for {ends} ports and slots")]
    Count { pieces: usize, ends: usize },
    /// The number of slots follows from the number of parts, and the reverse.
    #[error(
        "the slots of port '{0}' are counted by the pieces, so set `sizes`, or `how: stack` for one piece an index"
    )]
    SizesNeeded(String),
    #[error(transparent)]
    Runtime(#[from] titin_runtime::Error),
}

impl SplitError {
    /// The error with the names of the instance and the port.
    fn in_message(self, name: &str, port: &str) -> Error {
        match self {
            SplitError::Runtime(error) => error.into(),
            SplitError::SizesNeeded(_) => Error::Setting(format!("{name}: {self}")),
            _ => Error::Data(format!(
                "{name}: the message on port '{port}' cannot be split: {self}"
            )),
        }
    }
}

/// How messages are split, by the settings.
struct Split {
    mode: JoinMode,
    axis: usize,
    sizes: Option<Vec<i64>>,
}

/// The parts of a message.
enum Parts<'a> {
    List(Vec<View<'a>>),
    Arrays(Vec<ArrayPart<'a>>),
}

impl Parts<'_> {
    fn views(&self) -> Vec<View<'_>> {
        match self {
            Parts::List(values) => values.clone(),
            Parts::Arrays(parts) => parts
                .iter()
                .map(|(layout, bytes)| View::Array(layout.clone(), &bytes[..]))
                .collect(),
        }
    }
}

impl Split {
    fn new(instance: &Instance) -> Result<Split> {
        let settings = ComponentSettings::new(instance, BuiltIn::Splitter)?;
        let mode = settings.word("", "how", &WORDS)?;
        let axis = settings.count("", "axis")?;
        let sizes = settings.find("", "sizes")?;
        Ok(Split {
            mode: mode.unwrap_or(JoinMode::Concatenate),
            axis: axis.unwrap_or(0) as usize,
            sizes: sizes.map(|value| value.as_ints()).transpose()?,
        })
    }

    fn parts<'a>(
        &self,
        data: &'a View<'_>,
        targets: &Targets<'_>,
    ) -> Result<Parts<'a>, SplitError> {
        match (data, self.mode) {
            (View::List(values), JoinMode::List) => Ok(Parts::List(values.clone())),
            (other, JoinMode::List) => Err(SplitError::NoList(describe(other))),
            (View::Array(layout, elements), JoinMode::Stack) => Ok(Parts::Arrays(
                array_joining::unstack(layout, elements, self.axis)?,
            )),
            (View::Array(layout, elements), _) => {
                let sizes = self.sizes(layout, targets)?;
                let parts = array_joining::split(layout, elements, self.axis, &sizes)?;
                Ok(Parts::Arrays(parts))
            }
            (other, _) => Err(SplitError::NoArray(describe(other))),
        }
    }

    /// The `sizes` of the settings, or else equal sizes.
    fn sizes(&self, layout: &Layout, targets: &Targets<'_>) -> Result<Vec<u64>, SplitError> {
        match (&self.sizes, targets.resizable) {
            (Some(sizes), _) => unsigned(sizes),
            (None, None) => equal_sizes(layout, self.axis, targets.fixed.len()),
            (None, Some(port)) => Err(SplitError::SizesNeeded(port.info.name.clone())),
        }
    }
}

/// The ends that receive the parts.
struct Targets<'a> {
    /// Ports without slots, and the slots of ports with a fixed number of slots.
    fixed: Vec<PortOrSlot>,
    /// A port with as many slots as there are parts left.
    resizable: Option<&'a InstancePort>,
}

impl<'a> Targets<'a> {
    /// The ends of the ports `out`. Ports without a conduit count too: titin drops the parts of
    /// such ports, and the parts of all other ports stay the same.
    fn of(instance: &Instance, out: &'a [InstancePort]) -> Targets<'a> {
        let (resizable, fixed): (Vec<_>, Vec<_>) = out.iter().partition(|port| port.info.resizable);
        Targets {
            fixed: fixed
                .into_iter()
                .flat_map(|port| ends(instance, port))
                .collect(),
            resizable: resizable.first().copied(),
        }
    }

    /// The end of each part, in order. Sets the number of slots of the resizable port.
    fn assign(&self, instance: &Instance, parts: usize) -> Result<Vec<PortOrSlot>, SplitError> {
        let mut all = self.fixed.clone();
        if let Some(port) = self.resizable
            && let Some(rest) = parts.checked_sub(all.len())
        {
            instance.set_slots(port.id, rest as u32)?;
            all.extend(ends(instance, port));
        }
        if all.len() != parts {
            return Err(SplitError::Count {
                pieces: parts,
                ends: all.len(),
            });
        }
        Ok(all)
    }
}

/// Refuses negative sizes. A size may be zero.
fn unsigned(sizes: &[i64]) -> Result<Vec<u64>, SplitError> {
    let unsigned = sizes.iter().map(|size| u64::try_from(*size).ok());
    let negative = || SplitError::NegativeSize(sizes.to_vec());
    unsigned.collect::<Option<_>>().ok_or_else(negative)
}

/// Equal sizes for a number of parts.
fn equal_sizes(layout: &Layout, axis: usize, parts: usize) -> Result<Vec<u64>, SplitError> {
    let extent = layout.shape.get(axis).copied().unwrap_or(0);
    let pieces = parts as u64;
    if pieces == 0 {
        return Err(SplitError::NoPort);
    }
    let size = |piece: u64| extent / pieces + u64::from(piece < extent % pieces);
    let sizes: Vec<u64> = (0..pieces).map(size).collect();
    if !extent.is_multiple_of(pieces) {
        return Err(SplitError::Indivisible {
            extent,
            axis,
            pieces,
            suggested: sizes,
        });
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use titin_runtime::{Dtype, StorageOrder};

    #[test]
    fn pieces_are_equal_or_sizes_are_suggested() {
        let layout = Layout::new(Dtype::Float64, StorageOrder::C, [3, 10]);
        assert_eq!(equal_sizes(&layout, 1, 5).unwrap(), [2; 5]);
        let why = equal_sizes(&layout, 1, 4).unwrap_err().to_string();
        assert!(
            why.contains("the extent 10 of axis 1") && why.contains("[3, 3, 2, 2]"),
            "{why}"
        );
        assert!(
            equal_sizes(&layout, 1, 0)
                .unwrap_err()
                .to_string()
                .contains("no port")
        );
        assert_eq!(unsigned(&[1, 0]).unwrap(), [1, 0]);
        assert_eq!(
            unsigned(&[1, -1]).unwrap_err().to_string(),
            "of the sizes [1, -1] one is negative"
        );
    }
}
