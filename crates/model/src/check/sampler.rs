//! The table of a `titin.sampler`: each column must be a setting of the members.
//!
//! The check reads the first line of a CSV file that is there. The sampler itself reports a file that
//! is not there, since a run may make the file first.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::settings::supported;
use crate::built_in::BuiltIn;
use crate::description::Description;
use crate::names::InstanceName;
use crate::network::{Network, NetworkComponent};
use crate::problem::{Code, Problems, TextPosition, did_you_mean, listing};
use crate::settings::Setting;

/// The most bytes of a line with the names of columns.
const LONGEST_HEAD: u64 = 1 << 20;

pub(super) fn check(description: &Description, network: &Network, problems: &mut Problems) {
    let is_sampler = |component: &&NetworkComponent| {
        component.implementation.as_deref() == Some(BuiltIn::Sampler.name())
    };
    for sampler in network.components.iter().filter(is_sampler) {
        let bundles = network.bundles.iter().map(|bundle| network.ends(bundle));
        let own = bundles.filter(|(sender, _)| sender.id == sampler.id);
        for (_, member) in own {
            check_turns(network, member, problems);
            check_columns(description, network, sampler, member, problems);
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

fn check_columns(
    description: &Description,
    network: &Network,
    sampler: &NetworkComponent,
    member: &NetworkComponent,
    problems: &mut Problems,
) {
    let instance = InstanceName::new(sampler.path.clone(), Vec::new());
    let given = network.settings.find_entry(&instance, "table");
    let Some((path, Setting::Str(name))) = given else {
        return;
    };
    let mut entries = description.settings.entries();
    let at = entries.find(|(given, ..)| *given == path);
    let at = at.map_or(sampler.at, |(_, _, at)| at);
    let known = known_settings(description, network, member);
    for column in columns(description, network, &instance, name) {
        let own = column.strip_prefix(member.path.as_str());
        let own = own.and_then(|rest| rest.strip_prefix('.'));
        if !known.contains(own.unwrap_or(&column)) {
            report(&column, name, member, &known, at, problems);
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

/// The columns of a table; none if they cannot be read here.
fn columns(
    description: &Description,
    network: &Network,
    instance: &InstanceName,
    name: &str,
) -> Vec<String> {
    let text = |setting: &str| match network.settings.find(instance, setting) {
        Some(Setting::Str(text)) => Some(text.as_str()),
        _ => None,
    };
    let words = |text: &str, delimiter: char| -> Vec<String> {
        let words = text
            .split(delimiter)
            .map(|word| word.trim().trim_matches('"'));
        words.map(str::to_owned).collect()
    };
    if let Some(chosen) = text("columns") {
        return words(chosen, ',');
    }
    let is_csv = text("format").map_or(name.ends_with(".csv"), |format| format == "csv");
    let delimiter = match text("delimiter") {
        Some("tab") => '\t',
        given => given.and_then(|text| text.chars().next()).unwrap_or(','),
    };
    let head = is_csv.then(|| first_line(description, name)).flatten();
    head.map(|head| words(&head, delimiter)).unwrap_or_default()
}

/// The first line of a file beside the description that is no comment.
fn first_line(description: &Description, name: &str) -> Option<String> {
    let beside = |file: &str| Path::new(file).parent().map(|folder| folder.join(name));
    let mut paths = description.files().filter_map(beside);
    let path: PathBuf = paths.find(|path| path.is_file())?;
    let reader = BufReader::new(File::open(path).ok()?.take(LONGEST_HEAD));
    let lines = reader.lines().map_while(Result::ok);
    // Spreadsheets begin a file of UTF-8 with a byte order mark.
    let mut lines = lines.map(|line| line.trim_start_matches('\u{feff}').to_owned());
    lines.find(|line| !line.trim().is_empty() && !line.starts_with('#'))
}
