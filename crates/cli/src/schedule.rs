//! Who sends how much of a field to whom: worked out in one process for all ranks, as these would do it together.

pub(crate) mod given;
pub(crate) mod run;

use serde::Serialize;
use titin_array::{Decomposition, Exchange, Ownership, Side, Spread};
use titin_model::Pattern;

/// The most messages that are listed, ranks of a side, and indices of both.
const MOST_MESSAGES: usize = 20_000_000;
const MOST_RANKS: u32 = 1 << 20;
const MOST_INDICES: u64 = 4_000_000;

/// A field between two instances.
pub(crate) struct Coupling {
    pub(crate) from: End,
    pub(crate) to: End,
    /// Bytes of an element of all arrays that travel together.
    pub(crate) bytes: u64,
    /// How many arrays these are.
    pub(crate) arrays: usize,
    /// What the description says of steps, and of who says when.
    pub(crate) pattern: Option<Pattern>,
}

/// The array at one end, and what is known of who owns what.
pub(crate) struct End {
    /// The port, as users write it; none if there is no program yet.
    pub(crate) port: Option<String>,
    pub(crate) side: Side,
    /// Of an irregular side, the parts of each rank; `None` if only these know.
    pub(crate) parts: Option<Vec<Ownership>>,
    /// The width of the halo below and above, in each dimension.
    pub(crate) halo: Vec<(u64, u64)>,
}

/// All messages of an exchange, by sender and then by receiver.
#[derive(Debug, PartialEq)]
pub(crate) struct Schedule {
    pub(crate) messages: Vec<Message>,
}

/// What one rank sends to one other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Message {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) elements: u64,
}

impl End {
    pub(crate) fn ranks(&self) -> u32 {
        self.side.decomposition.ranks()
    }

    /// Whether it can be said which rank owns what.
    pub(crate) fn is_known(&self) -> bool {
        self.side.decomposition.is_regular() || self.parts.is_some()
    }

    /// What a rank owns where no rule says it.
    pub(crate) fn parts(&self, rank: u32) -> &Ownership {
        const RULE: &Ownership = &Ownership::Rule;
        self.parts
            .as_ref()
            .and_then(|parts| parts.get(rank as usize))
            .unwrap_or(RULE)
    }

    /// How it is spread, in words: `grid 4 × 1, even`.
    pub(crate) fn spread(&self) -> String {
        let decomposition = &self.side.decomposition;
        let Some(processes) = decomposition.processes() else {
            return if decomposition.is_by_boxes() {
                "boxes".into()
            } else {
                "indices".into()
            };
        };
        if self.ranks() == 1 {
            return "whole".into();
        }
        let mut words: Vec<String> = decomposition.spreads().map(word).collect();
        if words.iter().all(|word| *word == words[0]) {
            words.truncate(1);
        }
        let order = if is_fortran(decomposition) {
            ", ranks in Fortran order"
        } else {
            ""
        };
        format!("grid {processes}, {}{order}", words.join(" × "))
    }
}

/// How a dimension is spread, as it is written.
pub(crate) fn word(spread: &Spread) -> String {
    match spread {
        Spread::Even => "even".into(),
        Spread::Block => "block".into(),
        Spread::Cyclic(block) => format!("cyclic({block})"),
        Spread::Bounds(_) => "bounds".into(),
    }
}

/// Whether ranks count through the grid with the first dimension fastest, where that makes a difference.
fn is_fortran(decomposition: &Decomposition) -> bool {
    let Some(processes) = decomposition.processes() else {
        return false;
    };
    let wide: Vec<usize> = (0..processes.len())
        .filter(|dim| processes[*dim] > 1)
        .collect();
    let second = decomposition.coordinates(1);
    wide.len() > 1 && second.is_some_and(|place| place[wide[0]] == 1)
}

impl Coupling {
    pub(crate) fn exchange(&self) -> Result<Exchange, String> {
        Exchange::new(self.from.side.clone(), self.to.side.clone())
            .map_err(|error| error.to_string())
    }

    /// All messages; `None` if only the ranks of a side know what they own.
    pub(crate) fn schedule(&self) -> Result<Option<Schedule>, String> {
        let exchange = self.exchange()?;
        if !self.from.is_known() || !self.to.is_known() {
            return Ok(None);
        }
        let ranks = self.from.ranks().max(self.to.ranks());
        if ranks > MOST_RANKS {
            return Err(format!(
                "a side has {ranks} ranks, and of more than {MOST_RANKS} none is drawn or listed; give fewer"
            ));
        }
        let (from, to) = (self.from.parts.as_deref(), self.to.parts.as_deref());
        let indices = [from, to]
            .into_iter()
            .flatten()
            .flatten()
            .filter(|parts| matches!(parts, Ownership::Indices(_)));
        let listed = indices.fold(0u64, |sum, parts| {
            sum.saturating_add(parts.elements().unwrap_or_default())
        });
        if listed > MOST_INDICES {
            return Err(format!(
                "the sides have {listed} indices, and more than {MOST_INDICES} are not looked at; give fewer, or boxes"
            ));
        }
        let mut messages = Vec::new();
        let listed = exchange.every_sender(
            from.unwrap_or_default(),
            to.unwrap_or_default(),
            |from, schedule| {
                let partners = schedule.partners();
                messages.extend(partners.map(|to| Message {
                    from,
                    to: to.rank,
                    elements: to.elements,
                }));
                messages.len() <= MOST_MESSAGES
            },
        );
        listed.map_err(|error| error.to_string())?;
        if messages.len() > MOST_MESSAGES {
            return Err(format!(
                "the schedule has more than {MOST_MESSAGES} messages, which are too many to list; give fewer ranks"
            ));
        }
        Ok(Some(Schedule { messages }))
    }
}

impl Schedule {
    pub(crate) fn elements(&self) -> u64 {
        self.messages.iter().map(|message| message.elements).sum()
    }

    /// With how many ranks of the other side those of this one exchange anything: the fewest and the most.
    pub(crate) fn partners(&self, ranks: u32, of: impl Fn(&Message) -> u32) -> (u32, u32) {
        let mut counts = vec![0; ranks as usize];
        self.messages
            .iter()
            .for_each(|message| counts[of(message) as usize] += 1);
        (
            counts.iter().copied().min().unwrap_or(0),
            counts.iter().copied().max().unwrap_or(0),
        )
    }
}

/// A schedule for other programs.
#[derive(Serialize)]
pub(crate) struct Told {
    from: ToldEnd,
    to: ToldEnd,
    /// Bytes of an element of all arrays that travel together, and how many these are.
    element_bytes: u64,
    arrays: usize,
    pattern: Option<Pattern>,
    /// How many others are the same between other instances.
    more: usize,
    /// `None` if only the ranks know what they own.
    messages: Option<Vec<ToldMessage>>,
}

#[derive(Serialize)]
struct ToldEnd {
    port: Option<String>,
    shape: Vec<u64>,
    region: [Vec<u64>; 2],
    ranks: u32,
    owned: &'static str,
    grid: Option<Vec<u64>>,
    spread: Option<Vec<String>>,
}

#[derive(Serialize)]
struct ToldMessage {
    #[serde(flatten)]
    message: Message,
    bytes: u64,
}

impl Told {
    pub(crate) fn of(coupling: &Coupling, schedule: Option<&Schedule>, more: usize) -> Told {
        let end = |end: &End| {
            let Side {
                decomposition,
                region,
                ..
            } = &end.side;
            let grid = decomposition
                .processes()
                .map(|processes| processes.to_vec());
            ToldEnd {
                port: end.port.clone(),
                shape: decomposition.shape().to_vec(),
                region: [region.lower().to_vec(), region.upper().to_vec()],
                ranks: decomposition.ranks(),
                owned: match (&grid, decomposition.is_by_boxes()) {
                    (Some(_), _) => "grid",
                    (None, true) => "boxes",
                    (None, false) => "indices",
                },
                spread: grid
                    .is_some()
                    .then(|| decomposition.spreads().map(word).collect()),
                grid,
            }
        };
        let told = |message: &Message| ToldMessage {
            message: *message,
            bytes: message.elements * coupling.bytes,
        };
        Told {
            from: end(&coupling.from),
            to: end(&coupling.to),
            element_bytes: coupling.bytes,
            arrays: coupling.arrays,
            pattern: coupling.pattern.clone(),
            more,
            messages: schedule.map(|schedule| schedule.messages.iter().map(told).collect()),
        }
    }
}
