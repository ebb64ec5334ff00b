//! Processor time and memory of processes of this host, from `/proc`.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::time::Instant;

use serde::Serialize;

/// The most processes that are looked at in one look. With more of them, a look is at the next ones: a
/// thousand looks a second would cost more than a hundredth of a core.
const MOST_AT_ONCE: usize = 100;

/// The load of a process, and what it has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ProcessLoad {
    /// The share of a core over the last look; `None` before the second look.
    pub(crate) load: Option<f64>,
    /// The processor time of all threads, in seconds.
    pub(crate) seconds: f64,
    /// The resident memory in bytes.
    pub(crate) memory: u64,
}

/// The processes of a run on this host.
#[derive(Default)]
pub(crate) struct Processes {
    known: HashMap<u32, (Instant, ProcessLoad)>,
    /// Where in the list the next look begins.
    next: usize,
}

impl Processes {
    /// Looks at the processes, whose ids are in ascending order, or at a part of them.
    pub(crate) fn look(&mut self, pids: &[u32]) {
        self.known.retain(|pid, _| pids.binary_search(pid).is_ok());
        for place in 0..pids.len().min(MOST_AT_ONCE) {
            let pid = pids[(self.next + place) % pids.len()];
            match usage(pid) {
                Some(found) => self.note(pid, found),
                None => drop(self.known.remove(&pid)),
            }
        }
        self.next = (self.next + MOST_AT_ONCE) % pids.len().max(1);
    }

    fn note(&mut self, pid: u32, found: ProcessLoad) {
        let now = Instant::now();
        let load = self.known.get(&pid).map(|(then, before)| {
            let time = (now - *then).as_secs_f64().max(1e-3);
            (found.seconds - before.seconds).max(0.0) / time
        });
        self.known.insert(pid, (now, ProcessLoad { load, ..found }));
    }

    /// The use of a process at the last look at it.
    pub(crate) fn of(&self, pid: u32) -> Option<ProcessLoad> {
        self.known.get(&pid).map(|(_, found)| *found)
    }
}

/// The use of a process so far; `None` if there is no such process.
fn usage(pid: u32) -> Option<ProcessLoad> {
    let mut text = String::new();
    let file = File::open(format!("/proc/{pid}/stat")).ok()?;
    file.take(4096).read_to_string(&mut text).ok()?;
    parse(
        &text,
        rustix::param::clock_ticks_per_second(),
        rustix::param::page_size() as u64,
    )
}

/// Reads the fields 14 (user time), 15 (system time) and 24 (resident pages). The name of the program, which
/// may contain anything, ends with the last bracket.
fn parse(stat: &str, ticks: u64, page: u64) -> Option<ProcessLoad> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(ProcessLoad {
        load: None,
        seconds: field(14)?.checked_add(field(15)?)? as f64 / ticks.max(1) as f64,
        memory: field(24)?.saturating_mul(page),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = "7 (a) S 1) R 1 7 7 0 -1 4194304 90 0 0 0 250 50 0 0 20 0 1 0 100 1000 25 18446744073709551615";
        let found = parse(stat, 100, 4096).unwrap();
        assert_eq!((found.seconds, found.memory), (3.0, 25 * 4096));
        for text in [
            "",
            "7 (a",
            "7 (a) R",
            "7 (a) R x x x x x x x x x x x x x x x x x x x x x x",
        ] {
            assert_eq!(parse(text, 100, 4096), None);
        }
    }

    #[test]
    fn this_process_uses_memory() {
        let mut processes = Processes::default();
        let own = std::process::id();
        processes.look(&[own]);
        let first = processes.of(own).unwrap();
        assert!(first.memory > 100_000 && first.load.is_none(), "{first:?}");
        processes.look(&[own]);
        assert!(processes.of(own).unwrap().load.is_some());
        processes.look(&[]);
        assert_eq!(processes.of(own), None);
    }
}
