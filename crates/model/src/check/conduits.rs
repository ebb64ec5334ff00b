//! Conduits of the network: the medium must exist between both processes, the filters must be able
//! to run, and the coupling pattern must fit.

use crate::description::{ExecutionModel, Program, ProgramKind};
use crate::filter::{Filter, FilterKind, FilterSide, PYTHON_BETWEEN};
use crate::network::{Bundle, Calls, Network, NetworkComponent};
use crate::operator::Operator;
use crate::options::StartMode;
use crate::pattern::{PatternSide, Steps};
use crate::problem::{Code, Problems};
use crate::titin_section::Medium;

pub(super) fn check(network: &Network, start: &StartMode, problems: &mut Problems) {
    for bundle in &network.bundles {
        if problems.is_full() {
            return;
        }
        pins(network, bundle, problems);
        medium(network, bundle, start, problems);
        pattern(network, bundle, problems);
        if !bundle.filters.is_empty() {
            filters(network, bundle, start, problems);
        }
    }
}

/// A conduit has one medium: pins at both ends must agree.
fn pins(network: &Network, bundle: &Bundle, problems: &mut Problems) {
    let pinned = &network.extras.medium;
    if pinned.len() < 2 {
        return;
    }
    let (sender, receiver) = network.ends(bundle);
    let (from, to) = ends(sender, receiver, bundle);
    let (Some(one), Some(other)) = (pinned.get(from.as_str()), pinned.get(to.as_str())) else {
        return;
    };
    if one.medium == other.medium {
        return;
    }
    let what = format!("the conduit from \"{from}\" to \"{to}\" is pinned to two media");
    let why = format!(
        "\"titin: medium\" has {} for \"{from}\", and {} for \"{to}\"",
        one.medium.key(),
        other.medium.key()
    );
    let hint = "take one of them out; where a port sends to several, pin those that receive";
    problems.error_hint(
        one.at.max(other.at),
        Code::BadValue,
        what,
        why,
        hint.to_string(),
    );
}

/// Two programs in different processes cannot use the medium inproc.
fn medium(network: &Network, bundle: &Bundle, start: &StartMode, problems: &mut Problems) {
    let (sender, receiver) = network.ends(bundle);
    let apart = |component: &NetworkComponent| {
        let process = |program: &Program| {
            !matches!(program.kind, ProgramKind::Manual)
                && program.execution_model != ExecutionModel::Manual
        };
        component.program.as_deref().is_some_and(process) && !component.is_left_out_by(start)
    };
    let host = |component: &NetworkComponent| match component
        .program
        .as_ref()
        .map(|program| &program.kind)
    {
        Some(ProgramKind::Hosted(guest)) => Some(guest.host.clone()),
        _ => None,
    };
    let together =
        sender.id == receiver.id || host(sender).is_some() && host(sender) == host(receiver);
    if bundle.medium != Some(Medium::Inproc) || together || !apart(sender) || !apart(receiver) {
        return;
    }
    let (from, to) = ends(sender, receiver, bundle);
    let pin = [&to, &from]
        .into_iter()
        .find_map(|path| network.extras.medium.get(path.as_str()));
    let at = pin.map_or(bundle.at, |pinned| pinned.at);
    let what = format!("the conduit from \"{from}\" to \"{to}\" cannot be pinned to inproc");
    let why = format!(
        "\"{}\" and \"{}\" are programs of their own, and inproc is within one process",
        sender.path, receiver.path
    );
    let hint = "write shm or tcp, or take the pin out; or run both inside one program, as functions of one host (`titin: {host: ...}`)";
    problems.error_hint(at, Code::BadValue, what, why, hint.to_string());
}

/// Pins of filters that cannot be kept, and user functions in programs that cannot call them.
fn filters(network: &Network, bundle: &Bundle, start: &StartMode, problems: &mut Problems) {
    let (sender, receiver) = network.ends(bundle);
    let placed = network.filters(bundle);
    let sides = network.filter_sides(bundle);
    let last_early = sides.iter().rposition(|side| *side == FilterSide::Sender);
    let (from, to) = ends(sender, receiver, bundle);
    for (i, filter) in bundle.filters.iter().enumerate() {
        let later = last_early
            .filter(|last| i < *last)
            .map(|last| &bundle.filters[last]);
        if let (Some(FilterSide::Receiver), Some(later)) = (placed[i].side, later) {
            let what = format!(
                "filter \"{}\" cannot run at the receiver, \"{to}\"",
                plain(filter)
            );
            let why = format!(
                "\"{later}\" stands behind it and runs at the sender, with all that stand before it"
            );
            let hint = format!(
                "write \"{}\" after \"{later}\", or let it run at the sender: \"{}@sender\"",
                filter,
                plain(filter)
            );
            problems.error_hint(bundle.at, Code::Filter, what, why, hint);
            continue;
        }
        if !matches!(filter.kind, FilterKind::User(_)) {
            continue;
        }
        let built_in = |component: &NetworkComponent| {
            let program = component
                .program
                .as_deref()
                .filter(|_| !component.is_left_out_by(start));
            program.and_then(|program| match program.kind {
                ProgramKind::BuiltIn(built_in) => Some(built_in),
                _ => None,
            })
        };
        let (here, there, own, word) = match sides[i] {
            FilterSide::Sender => (sender, receiver, &from, "sender"),
            FilterSide::Receiver => (receiver, sender, &to, "receiver"),
        };
        let name = plain(filter);
        // Every program can call a filter from a library. A Python filter needs Python in the
        // process, and a host of libraries has none.
        if here.calls == Calls::Libraries && network.in_python(filter).is_some() {
            let what = format!("filter \"{name}\" cannot run at the {word}, \"{own}\"");
            let why = format!(
                "\"{}\" is a function of a shared library, whose host runs no Python",
                here.path
            );
            let other = if word == "sender" {
                "receiver"
            } else {
                "sender"
            };
            let hint = match network.can_call(there.id, filter) {
                true => {
                    format!("let it run at the other end, if that is Python: \"{name}@{other}\"")
                }
                false => PYTHON_BETWEEN.to_string(),
            };
            problems.error_hint(bundle.at, Code::Filter, what, why, hint);
            continue;
        }
        let Some(runs) = built_in(here) else { continue };
        let what = format!("filter \"{name}\" cannot run at the {word}, \"{own}\"");
        let why = format!(
            "\"{}\" is {}, and components that come with titin call no functions of yours",
            here.path,
            runs.name()
        );
        let hint = match (built_in(there).is_some(), sides[i], later) {
            (true, _, _) => {
                "the other end cannot call it either: put a program of your own between the two"
                    .to_string()
            }
            (false, FilterSide::Receiver, _) => {
                format!("let it run at the other end: \"{name}@sender\"")
            }
            (false, FilterSide::Sender, None) => {
                format!("let it run at the other end: \"{name}@receiver\"")
            }
            (false, FilterSide::Sender, Some(later)) => {
                format!("let it run at the other end: \"{name}@receiver\", after \"{later}\"")
            }
        };
        problems.error_hint(bundle.at, Code::Filter, what, why, hint);
    }
}

/// A field is coupled without filters and by regions of the same extents. On an F_INIT port each
/// use needs one field, since `reuse` counts the messages that arrive there.
fn pattern(network: &Network, bundle: &Bundle, problems: &mut Problems) {
    let Some(pattern) = &bundle.pattern else {
        return;
    };
    let (sender, receiver) = network.ends(bundle);
    let (from, to) = ends(sender, receiver, bundle);
    let given = [&to, &from]
        .into_iter()
        .find_map(|path| network.extras.fields.get(path.as_str()));
    let at = given.map_or(bundle.at, |(_, at)| *at);
    let what = format!("the pattern of the field from \"{from}\" to \"{to}\" does not fit");
    let mut told = |why: &str, hint: &str| {
        problems.error_hint(
            at,
            Code::BadValue,
            what.clone(),
            why.to_string(),
            hint.to_string(),
        );
    };
    let extents = |share: &PatternSide| {
        let (lower, upper) = share.region.as_ref()?;
        Some(
            lower
                .iter()
                .zip(upper)
                .map(|(lower, upper)| upper - lower)
                .collect::<Vec<_>>(),
        )
    };
    if !bundle.filters.is_empty() {
        told(
            "there are filters on the conduit, which see no field",
            "take the filters out, or the pattern",
        );
    }
    if let (Some(one), Some(other)) = (extents(&pattern.sender), extents(&pattern.receiver))
        && one != other
    {
        let why = format!(
            "the region of the sender has the extents {one:?}, that of the receiver {other:?}"
        );
        told(&why, "give both the same extents; they may lie elsewhere");
    }
    let port = receiver.ports.get(&bundle.receiver_port);
    if port.is_none_or(|port| port.operator != Operator::FInit) {
        return;
    }
    if pattern.cache().is_some() {
        let why = "it arrives on an F_INIT port, where reuse() counts what has come: the sender has to push it";
        told(
            why,
            "write mode: push, or receive it on a port of operator S",
        );
    } else if pattern.receiver.steps != Steps::default() {
        let why = "it arrives on an F_INIT port, where each use of the receiver needs one";
        told(
            why,
            "give the steps under \"sender\", those of which each begins a use of the receiver",
        );
    }
}

fn ends(
    sender: &NetworkComponent,
    receiver: &NetworkComponent,
    bundle: &Bundle,
) -> (String, String) {
    let end = |component: &NetworkComponent, port| format!("{}.{port}", component.path);
    (
        end(sender, &bundle.sender_port),
        end(receiver, &bundle.receiver_port),
    )
}

/// The filter in the notation without a side.
fn plain(filter: &Filter) -> String {
    Filter {
        side: None,
        ..filter.clone()
    }
    .to_string()
}
