//! Fuzzing without a nightly compiler: changes inputs at random and keeps those that are refused for a new reason.
//! Less thorough than cargo-fuzz, which `make fuzz` prefers where it is installed.
//!
//!     cargo run --release -p titin-testkit --example mutate -- TARGET|all [seconds]
//!     cargo run -p titin-testkit --example mutate -- seeds        writes fuzz/corpus anew

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use titin_testkit::fuzz::{Outcome, TARGETS, Target, seeds};

#[path = "../../model/fuzz/src/lib.rs"]
mod model;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, rest @ ..] = &words[..] else {
        eprintln!("usage: mutate TARGET|all|seeds [seconds]; the targets are {}", names().join(", "));
        return ExitCode::from(2);
    };
    if name == "seeds" {
        write_seeds();
        return ExitCode::SUCCESS;
    }
    let seconds = rest.first().map_or(60, |seconds| seconds.parse().expect("a number of seconds"));
    let chosen: Vec<Target> = targets().filter(|(target, _)| name == "all" || name == target).collect();
    if chosen.is_empty() {
        eprintln!("no target is called {name}; there are {}", names().join(", "));
        return ExitCode::from(2);
    }
    let found = chosen.into_iter().filter(|target| !run(*target, Duration::from_secs(seconds))).count();
    if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn targets() -> impl Iterator<Item = Target> {
    TARGETS.into_iter().chain([("description", description as fn(&[u8]) -> Outcome)])
}

fn names() -> Vec<&'static str> {
    targets().map(|(name, _)| name).collect()
}

fn description(bytes: &[u8]) -> Outcome {
    model::description(&String::from_utf8_lossy(bytes));
    Ok(())
}

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn corpus(target: &str) -> PathBuf {
    match target {
        "description" => top().join("crates/model/fuzz/corpus/description"),
        other => top().join("fuzz/corpus").join(other),
    }
}

fn write_seeds() {
    for (target, _) in TARGETS {
        std::fs::create_dir_all(corpus(target)).expect("a folder");
        for (name, bytes) in seeds(target) {
            std::fs::write(corpus(target).join(name), bytes).expect("a file");
        }
    }
}

/// False if an input made the target panic; it is kept.
fn run((name, enter): Target, time: Duration) -> bool {
    let mut inputs: Vec<Vec<u8>> = std::fs::read_dir(corpus(name))
        .expect("a corpus")
        .map(|entry| std::fs::read(entry.expect("an entry").path()).expect("an input"))
        .collect();
    let mut random =
        Random(Instant::now().elapsed().as_nanos() as u64 ^ u64::from(std::process::id()) << 20 | 1);
    let (mut reasons, mut count, start) = (HashSet::new(), 0u64, Instant::now());
    while start.elapsed() < time {
        let mut input = inputs[random.below(inputs.len())].clone();
        let other = inputs[random.below(inputs.len())].clone();
        (0..=random.below(4)).for_each(|_| random.change(&mut input, &other));
        count += 1;
        match catch_unwind(AssertUnwindSafe(|| enter(&input))) {
            Ok(outcome) => {
                let reason = outcome.map_err(|text| text.replace(|c: char| c.is_ascii_digit(), ""));
                if input.len() < 10_000 && inputs.len() < 5000 && reasons.insert(reason) {
                    inputs.push(input);
                }
            }
            Err(_) => {
                let folder = top().join("fuzz/artifacts").join(name);
                std::fs::create_dir_all(&folder).expect("a folder");
                let file = folder.join(format!("panic-{count}"));
                std::fs::write(&file, input).expect("a file");
                println!("{name}: a panic; the input is in {}", file.display());
                return false;
            }
        }
    }
    println!("{name}: {count} inputs, {} kinds of outcome, no panic", reasons.len());
    true
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit.max(1)
    }

    fn change(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(input.len() + 1);
        let left = input.len() - at;
        match self.below(7) {
            0 if left > 0 => input[at] ^= 1 << self.below(8),
            1 if left > 0 => input[at] = self.next() as u8,
            2 if left > 0 => {
                let extremes: [u64; 6] = [0, 1, u64::MAX, 1 << 31, 1 << 63, 64];
                let bytes = extremes[self.below(6)].to_le_bytes();
                let width = [1, 2, 4, 8][self.below(4)].min(left);
                input[at..at + width].copy_from_slice(&bytes[..width]);
            }
            3 => input.truncate(at),
            4 => drop(input.drain(at..at + self.below(left.min(64) + 1))),
            5 => {
                let length = self.below(other.len() + 1);
                let from = self.below(other.len() - length + 1);
                input.splice(at..at, other[from..from + length].iter().copied());
            }
            _ => input.insert(at, self.next() as u8),
        }
    }
}
