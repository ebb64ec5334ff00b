//! Conduits of the network: the medium must exist between both processes, the filters must be able
//! to run, and the coupling pattern must fit.

use crate::built_in::BuiltIn;
use crate::description::{ExecutionModel, Port, Program, ProgramKind};
use crate::filter::{Filter, FilterKind, FilterSide, PYTHON_BETWEEN};
use crate::names::Name;
use crate::network::{Bundle, Calls, Network, NetworkComponent};
use crate::operator::Operator;
use crate::options::StartPolicy;
use crate::pattern::{Pattern, PatternSide, Steps};
use crate::problem::{Code, Problems};
use crate::titin_section::Medium;

pub(super) fn check(network: &Network, start: &StartPolicy, problems: &mut Problems) {
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
    let (first, second) = (one.medium.key(), other.medium.key());
    let why = format!("\"titin: medium\" has {first} for \"{from}\", and {second} for \"{to}\"");
    let hint = "take one of them out; where a port sends to several, pin those that receive";
    let at = one.at.max(other.at);
    problems.error_hint(at, Code::BadValue, what, why, hint.to_string());
}

/// Two programs in different processes cannot use the medium inproc.
fn medium(network: &Network, bundle: &Bundle, start: &StartPolicy, problems: &mut Problems) {
    let (sender, receiver) = network.ends(bundle);
    if bundle.medium != Some(Medium::Inproc)
        || share_process(sender, receiver)
        || !is_own_process(sender, start)
        || !is_own_process(receiver, start)
    {
        return;
    }
    let (from, to) = ends(sender, receiver, bundle);
    let mut paths = [&to, &from].into_iter();
    let pin = paths.find_map(|path| network.extras.medium.get(path.as_str()));
    let at = pin.map_or(bundle.at, |pinned| pinned.at);
    let what = format!("the conduit from \"{from}\" to \"{to}\" cannot be pinned to inproc");
    let why = format!(
        "\"{}\" and \"{}\" are programs of their own, and inproc is within one process",
        sender.path, receiver.path
    );
    let hint = "write shm or tcp, or take the pin out; or run both inside one program, as functions of one host (`titin: {host: ...}`)";
    problems.error_hint(at, Code::BadValue, what, why, hint.to_string());
}

/// Whether titin starts a process for each instance of a component.
fn is_own_process(component: &NetworkComponent, start: &StartPolicy) -> bool {
    let is_started = |program: &Program| {
        !matches!(program.kind, ProgramKind::Manual)
            && program.execution_model != ExecutionModel::Manual
    };
    component.program.as_deref().is_some_and(is_started) && !component.is_left_out_by(start)
}

/// Whether two components run in one process: a component with itself, or functions of one host.
fn share_process(sender: &NetworkComponent, receiver: &NetworkComponent) -> bool {
    sender.id == receiver.id || host(sender).is_some() && host(sender) == host(receiver)
}

fn host(component: &NetworkComponent) -> Option<&Name> {
    match &component.program.as_ref()?.kind {
        ProgramKind::Hosted(function) => Some(&function.host),
        _ => None,
    }
}

/// Pins of filters that cannot be kept, and user functions in programs that cannot call them.
fn filters(network: &Network, bundle: &Bundle, start: &StartPolicy, problems: &mut Problems) {
    let pinned = network.filters(bundle);
    let sides = network.filter_sides(bundle);
    let last_at_sender = sides.iter().rposition(|side| *side == FilterSide::Sender);
    for (i, filter) in bundle.filters.iter().enumerate() {
        let later_at_sender = last_at_sender
            .filter(|last| i < *last)
            .map(|last| &bundle.filters[last]);
        if let (Some(FilterSide::Receiver), Some(later_at_sender)) =
            (pinned[i].side, later_at_sender)
        {
            report_late_pin(network, bundle, filter, later_at_sender, problems);
        } else if let FilterKind::User(_) = filter.kind {
            let site = FilterSite::new(network, bundle, filter, sides[i]);
            if let Some((why, hint)) = site.fault(network, start, later_at_sender) {
                problems.error_hint(bundle.at, Code::Filter, site.cannot_run(), why, hint);
            }
        }
    }
}

/// Reports a filter pinned to the receiver before a filter that runs at the sender.
fn report_late_pin(
    network: &Network,
    bundle: &Bundle,
    filter: &Filter,
    later_at_sender: &Filter,
    problems: &mut Problems,
) {
    let (sender, receiver) = network.ends(bundle);
    let (_, to) = ends(sender, receiver, bundle);
    let name = plain(filter);
    let what = format!("filter \"{name}\" cannot run at the receiver, \"{to}\"");
    let why = format!(
        "\"{later_at_sender}\" stands behind it and runs at the sender, with all that stand before it"
    );
    let hint = format!(
        "write \"{filter}\" after \"{later_at_sender}\", or let it run at the sender: \"{name}@sender\""
    );
    problems.error_hint(bundle.at, Code::Filter, what, why, hint);
}

/// The built-in that implements a component, if the component is started.
fn started_built_in(component: &NetworkComponent, start: &StartPolicy) -> Option<BuiltIn> {
    let program = component
        .program
        .as_deref()
        .filter(|_| !component.is_left_out_by(start))?;
    match program.kind {
        ProgramKind::BuiltIn(built_in) => Some(built_in),
        _ => None,
    }
}

/// The end of a conduit at which a user filter is to run.
struct FilterSite<'n> {
    filter: &'n Filter,
    /// The name of the filter.
    name: String,
    side: FilterSide,
    here: &'n NetworkComponent,
    /// The component at the other end.
    there: &'n NetworkComponent,
    /// The path of the port.
    port: String,
}

impl<'n> FilterSite<'n> {
    fn new(network: &'n Network, bundle: &Bundle, filter: &'n Filter, side: FilterSide) -> Self {
        let (sender, receiver) = network.ends(bundle);
        let (from, to) = ends(sender, receiver, bundle);
        let (here, there, port) = match side {
            FilterSide::Sender => (sender, receiver, from),
            FilterSide::Receiver => (receiver, sender, to),
        };
        FilterSite {
            filter,
            name: plain(filter),
            side,
            here,
            there,
            port,
        }
    }

    /// Why the program cannot call the filter, and the hint. Every program can call a filter from a
    /// library. A Python filter needs Python in the process, and a host of libraries has none.
    fn fault(
        &self,
        network: &Network,
        start: &StartPolicy,
        later_at_sender: Option<&Filter>,
    ) -> Option<(String, String)> {
        let here = &self.here.path;
        if self.here.calls == Calls::Libraries && network.in_python(self.filter).is_some() {
            let why =
                format!("\"{here}\" is a function of a shared library, whose host runs no Python");
            return Some((why, self.hint_for_python(network)));
        }
        let built_in = started_built_in(self.here, start)?.name();
        let why = format!(
            "\"{here}\" is {built_in}, and components that come with titin call no functions of yours"
        );
        Some((why, self.hint_for_built_in(start, later_at_sender)))
    }

    fn cannot_run(&self) -> String {
        let side = match self.side {
            FilterSide::Sender => "sender",
            FilterSide::Receiver => "receiver",
        };
        format!(
            "filter \"{}\" cannot run at the {side}, \"{}\"",
            self.name, self.port
        )
    }

    /// The filter pinned to the other end.
    fn at_other_end(&self) -> String {
        match self.side {
            FilterSide::Sender => format!("\"{}@receiver\"", self.name),
            FilterSide::Receiver => format!("\"{}@sender\"", self.name),
        }
    }

    fn hint_for_python(&self, network: &Network) -> String {
        if !network.can_call(self.there.id, self.filter) {
            return PYTHON_BETWEEN.to_string();
        }
        format!(
            "let it run at the other end, if that is Python: {}",
            self.at_other_end()
        )
    }

    fn hint_for_built_in(&self, start: &StartPolicy, later_at_sender: Option<&Filter>) -> String {
        if started_built_in(self.there, start).is_some() {
            return "the other end cannot call it either: put a program of your own between the two"
                .to_string();
        }
        let hint = format!("let it run at the other end: {}", self.at_other_end());
        match later_at_sender.filter(|_| self.side == FilterSide::Sender) {
            Some(later_at_sender) => format!("{hint}, after \"{later_at_sender}\""),
            None => hint,
        }
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
    let mut paths = [&to, &from].into_iter();
    let given = paths.find_map(|path| network.extras.fields.get(path.as_str()));
    let at = given.map_or(bundle.at, |(_, at)| *at);
    let faults = [
        filters_on_field(bundle),
        unequal_regions(pattern),
        unfit_for_f_init(pattern, receiver.ports.get(&bundle.receiver_port)),
    ];
    for (why, hint) in faults.into_iter().flatten() {
        let what = format!("the pattern of the field from \"{from}\" to \"{to}\" does not fit");
        problems.error_hint(at, Code::BadValue, what, why, hint.to_string());
    }
}

/// The reason why a pattern does not fit, and the hint.
type PatternFault = (String, &'static str);

fn filters_on_field(bundle: &Bundle) -> Option<PatternFault> {
    let why = "there are filters on the conduit, which see no field".to_string();
    (!bundle.filters.is_empty()).then_some((why, "take the filters out, or the pattern"))
}

fn unequal_regions(pattern: &Pattern) -> Option<PatternFault> {
    let extents = |side: &PatternSide| {
        let (lower, upper) = side.region.as_ref()?;
        Some(
            lower
                .iter()
                .zip(upper)
                .map(|(lower, upper)| upper - lower)
                .collect::<Vec<_>>(),
        )
    };
    let (one, other) = (extents(&pattern.sender)?, extents(&pattern.receiver)?);
    let why =
        format!("the region of the sender has the extents {one:?}, that of the receiver {other:?}");
    (one != other).then_some((why, "give both the same extents; they may lie elsewhere"))
}

fn unfit_for_f_init(pattern: &Pattern, port: Option<&Port>) -> Option<PatternFault> {
    if port.is_none_or(|port| port.operator != Operator::FInit) {
        return None;
    }
    if pattern.cache().is_some() {
        let why = "it arrives on an F_INIT port, where reuse() counts what has come: the sender has to push it";
        return Some((
            why.into(),
            "write mode: push, or receive it on a port of operator S",
        ));
    }
    let why = "it arrives on an F_INIT port, where each use of the receiver needs one";
    let hint = "give the steps under \"sender\", those of which each begins a use of the receiver";
    (pattern.receiver.steps != Steps::default()).then(|| (why.into(), hint))
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
