//! A large description, for measuring: `large [COMPONENTS CONDUITS]` prints the description; `large
//! --time [COMPONENTS CONDUITS]` reads, checks and flattens it and finds all ends in memory, and
//! prints the time of each step (best of seven).

use std::fmt::Write;
use std::time::{Duration, Instant};

use titin_model::{LoadOptions, load_texts};

/// Components in layers: each sends to several of the next layer, in each step or at the end.
fn describe(components: usize, conduits: usize) -> String {
    let mut text = String::from("ymmsl_version: v0.2\nmodels:\n  large:\n    components:\n");
    let fan = conduits.div_ceil(components);
    for c in 0..components {
        let ports = |way: &str| {
            (0..fan)
                .map(|p| format!("{way}_{p}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let _ = write!(
            text,
            "      c{c}:\n        description: one of many\n        ports:\n          o_i: {}\n          s: {}\n        implementation: program\n",
            ports("out"),
            ports("in")
        );
    }
    text.push_str("    conduits:\n");
    for n in 0..conduits {
        let (from, port) = (n % components, n / components);
        // A different stride for each port, so that the graph is not a plain ring.
        let to = (from + 1 + port * 7) % components;
        let _ = writeln!(text, "      c{from}.out_{port}: c{to}.in_{port}");
    }
    text.push_str("programs:\n  program: {executable: ./program, supported_settings: {x: float}}\nsettings:\n  x: 1.0\n");
    for c in 0..components {
        let _ = writeln!(text, "  c{c}.x: {c}.5");
    }
    text
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<usize> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let (components, conduits) = match numbers.as_slice() {
        [components, conduits] => (*components, *conduits),
        _ => (1_000, 50_000),
    };
    let text = describe(components, conduits);
    if !arguments.iter().any(|a| a == "--time") {
        print!("{text}");
        return;
    }
    let mut best = [Duration::MAX; 3];
    for _ in 0..7 {
        let start = Instant::now();
        let description = load_texts(&[("large", &text)], &LoadOptions::default())
            .unwrap_or_else(|e| panic!("{e}"));
        let loaded = start.elapsed();
        let network = description.network(None).unwrap_or_else(|e| panic!("{e}"));
        let flat = start.elapsed();
        let ends = (0..network.conduit_count())
            .filter_map(|id| network.conduit(titin_model::ConduitId(id)));
        assert_eq!(ends.count(), conduits);
        let wired = start.elapsed();
        for (best, took) in best.iter_mut().zip([loaded, flat - loaded, wired - flat]) {
            *best = took.min(*best);
        }
    }
    println!(
        "{components} components, {conduits} conduits, {} bytes",
        text.len()
    );
    for (what, took) in [
        "read and checked",
        "flattened again",
        "ends of all conduits",
    ]
    .iter()
    .zip(best)
    {
        println!("{what:>20}: {:.1} ms", took.as_secs_f64() * 1e3);
    }
}
