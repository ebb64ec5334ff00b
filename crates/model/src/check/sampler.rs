//! The table of a `titin.sampler`: each column must be a setting of the members.
//!
//! The caller reads the columns of a table that is there, as the sampler does. A table that is not there is a
//! warning, since something may make the file before the run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::settings::supported;
use crate::built_in::BuiltIn;
use crate::description::Description;
use crate::names::InstanceName;
use crate::network::{Network, NetworkComponent};
use crate::options::{TableColumns, TableFile};
use crate::problem::{Code, Problems, TextPosition, did_you_mean, listing};
use crate::settings::Setting;

/// The table of a sampler without the setting `table`.
const USUAL_TABLE: &str = "table.csv";

pub(super) fn check(
    description: &Description,
    network: &Network,
    read: Option<TableColumns>,
    problems: &mut Problems,
) {
    let is_sampler = |component: &&NetworkComponent| {
        component.implementation.as_deref() == Some(BuiltIn::Sampler.name())
    };
    for sampler in network.components.iter().filter(is_sampler) {
        let table =
            read.and_then(|read| SamplerTable::read(description, network, sampler, read, problems));
        let bundles = network.bundles.iter().map(|bundle| network.ends(bundle));
        let own = bundles.filter(|(sender, _)| sender.id == sampler.id);
        for (_, member) in own {
            check_turns(network, member, problems);
            if let Some(table) = &table {
                check_columns(description, network, table, member, problems);
            }
        }
    }
}

/// Members of a sampler run until the last row is done, so all must run at once.
fn check_turns(network: &Network, member: &NetworkComponent, problems: &mut Problems) {
    let Some(ensemble) = network.extras.ensemble.get(&member.path) else {
        return;
    };
    if ensemble
        .at_once
        .is_none_or(|most| most >= member.instances())
    {
        return;
    }
    let what = format!("not all members of \"{}\" would run", member.path);
    let why = "members of a titin.sampler run until the last row is done, so none ends to make room for the next";
    let hint = "leave at_once out, and let the multiplicity say how many run at once";
    problems.error_hint(ensemble.at, Code::BadValue, what, why, hint.to_owned());
}

/// The table of a sampler, as the description names it.
struct SamplerTable {
    name: String,
    columns: Vec<String>,
    at: TextPosition,
}

impl SamplerTable {
    /// Reads the columns of a table; `None` if they are not known before the run.
    fn read(
        description: &Description,
        network: &Network,
        sampler: &NetworkComponent,
        read: TableColumns,
        problems: &mut Problems,
    ) -> Option<Self> {
        let instance = InstanceName::new(sampler.path.clone(), Vec::new());
        let text = |setting: &str| match network.settings.find(&instance, setting) {
            Some(Setting::Str(text)) => Some(text.as_str()),
            _ => None,
        };
        let given = network.settings.find_entry(&instance, "table");
        let (name, at) = match given {
            None => (USUAL_TABLE, sampler.at),
            Some((path, Setting::Str(name))) => {
                let mut entries = description.settings.entries();
                let at = entries.find(|(given, ..)| *given == path);
                (name.as_str(), at.map_or(sampler.at, |(_, _, at)| at))
            }
            Some(_) => return None,
        };
        let Some(path) = beside(description, name) else {
            // The program may find the table in its work directory.
            let is_staged = network.extras.stage.contains_key(&sampler.path);
            if !is_staged && text("columns").is_none() {
                let what = format!(
                    "\"{name}\", the table of \"{}\", is not there",
                    sampler.path
                );
                let why = "a relative name begins beside the description, so the columns of the table cannot be checked";
                let hint = "write the table before the run, or have `titin: stage` copy it for the sampler";
                problems.warn(at, Code::File, what, why, hint.to_owned());
            }
            let columns = text("columns")?
                .split(',')
                .map(|word| word.trim().to_owned());
            let columns = columns.filter(|word| !word.is_empty()).collect();
            return Some(SamplerTable {
                name: name.to_owned(),
                columns,
                at,
            });
        };
        let columns = read(&TableFile {
            path: &path,
            format: text("format"),
            delimiter: text("delimiter"),
            columns: text("columns"),
        });
        match columns {
            Ok(columns) => Some(SamplerTable {
                name: name.to_owned(),
                columns,
                at,
            }),
            Err(why) => {
                let what = format!("the table of \"{}\" cannot be read", sampler.path);
                problems.error(at, Code::BadValue, what, why);
                None
            }
        }
    }
}

/// A file of the given name beside one of the files of the description.
fn beside(description: &Description, name: &str) -> Option<PathBuf> {
    let beside = |file: &str| Path::new(file).parent().map(|folder| folder.join(name));
    let mut paths = description.files().filter_map(beside);
    paths.find(|path| path.is_file())
}

fn check_columns(
    description: &Description,
    network: &Network,
    table: &SamplerTable,
    member: &NetworkComponent,
    problems: &mut Problems,
) {
    let known = known_settings(description, network, member);
    for column in &table.columns {
        let own = column.strip_prefix(member.path.as_str());
        let own = own.and_then(|rest| rest.strip_prefix('.'));
        if !known.contains(own.unwrap_or(column)) {
            report(column, &table.name, member, &known, table.at, problems);
        }
    }
}

fn report(
    column: &str,
    table: &str,
    member: &NetworkComponent,
    known: &BTreeSet<String>,
    at: TextPosition,
    problems: &mut Problems,
) {
    let names = || known.iter().map(String::as_str);
    let what = format!(
        "column \"{column}\" of \"{table}\" is no setting of \"{}\"",
        member.path
    );
    let why = "neither \"settings\" nor the program's \"supported_settings\" has it, so no member would read it";
    let hint = did_you_mean(column, names()).unwrap_or_else(|| match known.is_empty() {
        true => format!(
            "give it a value under settings, {}.{column}, or list it under supported_settings",
            member.path
        ),
        false => format!("known there: {}", listing(names())),
    });
    problems.error_hint(at, Code::UnknownSetting, what, why, hint);
}

/// The settings that members may read: those that their program lists, and those with a value.
fn known_settings(
    description: &Description,
    network: &Network,
    member: &NetworkComponent,
) -> BTreeSet<String> {
    let listed = supported(description, member).into_iter().flatten();
    let mut known: BTreeSet<String> = listed.map(|(name, _)| name.to_string()).collect();
    let first = InstanceName::new(member.path.clone(), vec![0; member.multiplicity.len()]);
    let given = network.settings.of(&first);
    known.extend(given.map(|(path, _)| {
        let name = path.rsplit('.').next().unwrap_or(path);
        name.to_owned()
    }));
    known
}
