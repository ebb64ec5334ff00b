//! What can be known to be wrong before a run.

use crate::description::Description;
use crate::flatten::flatten;
use crate::load::LoadOptions;
use crate::problem::Problems;

pub(crate) fn description(description: &mut Description, options: &LoadOptions, problems: &mut Problems) {
    if let Some(root) = description.root(options.model.as_deref(), problems) {
        flatten(description, root, problems);
    }
}
