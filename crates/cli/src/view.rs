//! The display while a model runs: live at a terminal, plain lines elsewhere.

mod live;
mod plain;

use std::io::IsTerminal;

use titin_manager::directory::RunDirectory;
use titin_manager::plan::{Plan, StartMode};
use titin_manager::session::RunView;

/// The view for the standard error of this process.
pub(crate) fn make(verbose: bool) -> Box<dyn RunView> {
    match std::io::stderr().is_terminal() {
        true => Box::new(live::Live::new(verbose)),
        false => Box::new(plain::Plain::new(verbose)),
    }
}

/// A line of JSON for a calling process that runs instances itself: the instances, and how to join.
/// `None` if the calling process runs no instances.
fn hosted(directory: &RunDirectory, plan: &Plan) -> Option<String> {
    let hosted = plan
        .instances
        .iter()
        .filter(|planned| planned.start == StartMode::Hosted);
    let instances: Vec<_> = hosted
        .map(|planned| serde_json::json!({ "name": planned.name, "component": planned.component }))
        .collect();
    let told = || serde_json::json!({ "manager": directory.connection(), "instances": instances });
    (!instances.is_empty()).then(|| format!("{}\n", told()))
}
