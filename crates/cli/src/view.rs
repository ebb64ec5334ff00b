//! What is shown while a model runs: live at a terminal, plain lines elsewhere.

mod live;
mod plain;

use std::io::IsTerminal;

use titin_manager::directory::RunDirectory;
use titin_manager::plan::{Plan, Start};
use titin_manager::session::{View, exports};

/// The view for where messages go.
pub(crate) fn make(verbose: bool) -> Box<dyn View> {
    match std::io::stderr().is_terminal() {
        true => Box::new(live::Live::new(verbose)),
        false => Box::new(plain::Plain::new(verbose)),
    }
}

/// For a calling process that runs instances itself: one line of JSON that says which, and how to join. `None` if it
/// runs none.
fn hosted(directory: &RunDirectory, plan: &Plan) -> Option<String> {
    let hosted = plan.instances.iter().filter(|planned| planned.start == Start::Hosted);
    let instances: Vec<_> = hosted
        .map(|planned| serde_json::json!({ "name": planned.name, "component": planned.component }))
        .collect();
    let told = || serde_json::json!({ "manager": directory.connection(), "instances": instances });
    (!instances.is_empty()).then(|| format!("{}\n", told()))
}

/// How to start what is started by hand; `None` if nothing is. It goes to standard error, since standard output is
/// for the end of the run, perhaps as JSON.
fn by_hand(directory: &RunDirectory, plan: &Plan) -> Option<String> {
    let names: Vec<&str> = plan
        .instances
        .iter()
        .filter(|planned| planned.start == Start::ByHand)
        .map(|planned| planned.name.as_str())
        .collect();
    let (first, others) = names.split_first()?;
    let mut text = String::from("Start each of these programs in a shell of its own, after\n\n");
    for line in exports(&directory.connection(), first).lines() {
        text.push_str(&format!("    {line}\n"));
    }
    if !others.is_empty() {
        let few = titin_model::listing(others.iter().copied());
        text.push_str(&format!("\nand with TITIN_INSTANCE set to {few} for the others.\n"));
    }
    Some(text)
}
