//! Which model is run, and which implementation a component has.

use std::collections::HashSet;

use crate::description::{Component, Description, Model};
use crate::names::Name;
use crate::problem::{Code, Problems, TextPosition, did_you_mean, listing};

/// A model around a component.
#[derive(Debug, Clone)]
pub struct EnclosingModel<'d> {
    /// The name of the model.
    pub name: &'d Name,
    /// The dotted path from the model to the innermost model around the component; empty for the
    /// innermost model.
    pub path: String,
}

impl<'d> EnclosingModel<'d> {
    /// The innermost model around a component.
    pub fn innermost(name: &'d Name) -> Self {
        EnclosingModel {
            name,
            path: String::new(),
        }
    }
}

impl Description {
    /// The implementation of a component, with custom implementations; the outermost model decides.
    /// `around` has the models around the component, outermost first.
    pub fn implementation<'d>(
        &'d self,
        around: &[EnclosingModel<'_>],
        component: &'d Component,
    ) -> Option<&'d Name> {
        if !self.custom_implementations.is_empty() {
            for EnclosingModel { name, path } in around {
                let dot = if path.is_empty() { "" } else { "." };
                let key = format!("{name}.{path}{dot}{}", component.name);
                if let Some(custom) = self.custom_implementations.get(key.as_str()) {
                    return custom.implementation.as_ref();
                }
            }
        }
        component.implementation.as_ref()
    }

    /// Models that are not the implementation of any component.
    pub(crate) fn roots(&self) -> Vec<&Model> {
        let mut used: HashSet<&Name> = self
            .custom_implementations
            .values()
            .filter_map(|custom| custom.implementation.as_ref())
            .collect();
        for model in self.models.values() {
            used.extend(
                model
                    .components
                    .values()
                    .filter_map(|c| c.implementation.as_ref()),
            );
        }
        self.models
            .values()
            .filter(|model| !used.contains(&model.name))
            .collect()
    }

    /// A model that contains itself, and the models in between.
    fn model_loop(&self) -> Option<(TextPosition, String)> {
        let user_of = |model: &Model| {
            let using = |user: &&Model| {
                user.components
                    .values()
                    .any(|component| component.implementation.as_ref() == Some(&model.name))
            };
            self.models.values().find(using)
        };
        // Walks from a model to a user of the model. Every model has a user here, so the walk comes
        // back to a model that it has passed.
        let mut path = vec![self.models.values().next()?];
        let start = loop {
            let user = user_of(path.last()?)?;
            if let Some(start) = path.iter().position(|model| model.name == user.name) {
                break start;
            }
            path.push(user);
        };
        let last = path[path.len() - 1];
        let within = path[start..path.len() - 1].iter().rev().chain([&last]);
        let within = within
            .map(|model| format!("\"{}\"", model.name))
            .collect::<Vec<_>>();
        let why = format!(
            "\"{}\" contains {}",
            last.name,
            within.join(", which contains ")
        );
        let at = last.at;
        Some((at, why))
    }

    /// The model to run.
    pub(crate) fn root(&self, wanted: Option<&str>, problems: &mut Problems) -> Option<&Model> {
        if let Some(wanted) = wanted {
            let found = self.models.get(wanted);
            if found.is_none() {
                self.report_no_model(wanted, problems);
            }
            return found;
        }
        match self.roots().as_slice() {
            [root] => return Some(root),
            [] => self.report_no_root(problems),
            several => report_several(several, problems),
        }
        None
    }

    fn report_no_model(&self, wanted: &str, problems: &mut Problems) {
        let names = || self.models.keys().map(Name::as_str);
        let what = format!("there is no model \"{wanted}\"");
        let why = format!("the models are {}", listing(names()));
        let (at, hint) = (TextPosition::default(), did_you_mean(wanted, names()));
        problems.error_hint(at, Code::NoModel, what, why, hint);
    }

    fn report_no_root(&self, problems: &mut Problems) {
        let (at, what) = (TextPosition::default(), "there is no model to run");
        if self.models.is_empty() {
            // Another problem has been reported, which may explain the lack of models.
            if problems.errors() == 0 {
                problems.error(at, Code::NoModel, what, "the files describe none");
            }
            return;
        }
        match self.model_loop() {
            Some((at, why)) => problems.error(at, Code::ModelLoop, "a model contains itself", why),
            None => {
                let why = "every model is the implementation of a component of another";
                problems.error(at, Code::NoModel, what, why);
            }
        }
    }
}

fn report_several(roots: &[&Model], problems: &mut Problems) {
    let what = "it is not clear which model to run";
    let names = listing(roots.iter().map(|model| model.name.as_str()));
    let why = format!("these are used by no other: {names}");
    let hint = "say which, with --model NAME".to_string();
    problems.error_hint(TextPosition::default(), Code::NoModel, what, why, hint);
}
