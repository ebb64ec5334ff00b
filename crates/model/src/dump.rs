//! Writes a description as yMMSL v0.2.

use crate::description::{
    BaseEnv, CheckpointRule, Checkpoints, Description, ExecutionModel, KeepsState, Ports, Program,
    ProgramKind, ResourceRequest, SETTINGS_IN, SupportedSetting,
};
use crate::emit::{Yaml, YamlMap, float};
use crate::filter::{Filter, FilterSide};
use crate::names::Name;
use crate::operator::{Operator, Timeline};
use crate::pattern::{Pattern, PatternSide, Steps, WhenFull};
use crate::quantity::{Dimension, Quantity};
use crate::settings::{Setting, Settings};
use crate::titin_section::{BufferLimits, EndTime, Extras, LinkTuning, UserFunction};

impl Description {
    /// The description as one yMMSL v0.2 file, imports included.
    pub fn to_ymmsl(&self) -> String {
        let mut top = begin(&self.description);
        let mut models = YamlMap::default();
        for model in self.models.values() {
            let mut map = YamlMap::default();
            map.text("description", &model.description);
            map.map("ports", ports(&model.ports));
            map.map(
                "supported_settings",
                supported_settings(&model.supported_settings),
            );
            let mut components = YamlMap::default();
            for component in model.components.values() {
                let implementation = component.implementation.as_ref();
                let mut inner = component_map(
                    &component.description,
                    &component.ports,
                    implementation,
                    &component.multiplicity,
                );
                if component.optional {
                    inner.raw("optional", Some(true));
                }
                components.put(component.name.as_str(), Yaml::Map(inner));
            }
            map.map("components", components);
            let matching = model
                .matching_timelines
                .iter()
                .map(|m| (&m.head, m.others.as_slice()));
            map.map("matching_timelines", matching_timelines(matching));
            let lines = model.conduits.iter().map(|c| {
                (
                    c.sender.to_string(),
                    c.filters.as_slice(),
                    c.receiver.to_string(),
                )
            });
            map.map("conduits", conduits(lines));
            models.put(model.name.as_str(), Yaml::Map(map));
        }
        top.map("models", models);
        let mut custom = YamlMap::default();
        for (path, entry) in &self.custom_implementations {
            let value = entry
                .implementation
                .as_ref()
                .map_or(Yaml::Raw("null".into()), |name| {
                    Yaml::Text(name.to_string())
                });
            custom.put(path.as_str(), value);
        }
        top.map("custom_implementations", custom);
        top.map("settings", settings(&self.settings));
        top.map("programs", programs(self.programs.values().map(|p| &**p)));
        top.map(
            "resources",
            resources(
                self.resources
                    .iter()
                    .map(|(path, r)| (path.to_string(), r.need)),
            ),
        );
        top.map("checkpoints", checkpoints(&self.checkpoints));
        top.map("titin", extras(&self.extras));
        top.document()
    }
}

fn begin(description: &str) -> YamlMap {
    let mut top = YamlMap::default();
    top.raw("ymmsl_version", Some("v0.2"));
    top.text("description", description);
    top
}

fn component_map(
    description: &str,
    ports_of: &Ports,
    implementation: Option<&Name>,
    multiplicity: &[u32],
) -> YamlMap {
    let mut map = YamlMap::default();
    map.put("description", Yaml::Text(description.into()));
    // Without ports in the file, the reader guesses again. A written guess would count as a fact.
    if !ports_of.values().any(|port| port.guessed) {
        map.put("ports", Yaml::Map(ports(ports_of)));
    }
    map.text(
        "implementation",
        implementation.map_or("", |name| name.as_str()),
    );
    match multiplicity {
        [] => {}
        [one] => map.raw("multiplicity", Some(one)),
        sizes => map.raw("multiplicity", Some(format!("{sizes:?}"))),
    }
    map
}

fn ports(ports: &Ports) -> YamlMap {
    let mut map = YamlMap::default();
    let mut timelines: Vec<&Timeline> = Vec::new();
    for port in ports.values().filter(|port| !port.timeline.is_root()) {
        if !timelines.contains(&&port.timeline) {
            timelines.push(&port.timeline);
        }
    }
    let of = |operator: Operator, timeline: &Timeline| {
        let all = ports
            .values()
            .filter(|p| p.operator == operator && p.timeline == *timeline && p.name != SETTINGS_IN);
        all.map(|port| port.name.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    for operator in Operator::ALL {
        map.text(operator.key(), &of(operator, &Timeline::default()));
    }
    for timeline in timelines {
        let mut inner = YamlMap::default();
        for operator in [Operator::OI, Operator::S] {
            inner.text(operator.key(), &of(operator, timeline));
        }
        map.map(&format!("timeline {timeline}"), inner);
    }
    map
}

fn supported_settings(settings: &indexmap::IndexMap<Name, SupportedSetting>) -> YamlMap {
    let mut map = YamlMap::default();
    for (name, setting) in settings {
        let mut inner = YamlMap::default();
        inner.put("type", Yaml::Raw(setting.of.key().into()));
        inner.text("description", &setting.description);
        map.put(name.as_str(), Yaml::Map(inner));
    }
    map
}

fn matching_timelines<'a>(all: impl Iterator<Item = (&'a Timeline, &'a [Timeline])>) -> YamlMap {
    let mut map = YamlMap::default();
    for (head, others) in all {
        map.list(&head.to_string(), others.iter().map(ToString::to_string));
    }
    map
}

fn conduits<'a>(all: impl Iterator<Item = (String, &'a [Filter], String)>) -> YamlMap {
    let mut by_sender: indexmap::IndexMap<String, Vec<String>> = indexmap::IndexMap::new();
    for (sender, filters, receiver) in all {
        let mut words: Vec<String> = filters.iter().map(ToString::to_string).collect();
        words.push(receiver);
        by_sender.entry(sender).or_default().push(words.join(" "));
    }
    let mut map = YamlMap::default();
    for (sender, receivers) in by_sender {
        match receivers.as_slice() {
            [one] => map.put(sender, Yaml::Text(one.clone())),
            _ => map.list(&sender, receivers),
        }
    }
    map
}

fn settings(settings: &Settings) -> YamlMap {
    let mut map = YamlMap::default();
    for (path, value) in settings.iter() {
        let row = |row: &[f64]| {
            format!(
                "[{}]",
                row.iter().map(|x| float(*x)).collect::<Vec<_>>().join(", ")
            )
        };
        let value = match value {
            Setting::Bool(b) => Yaml::Raw(b.to_string()),
            Setting::Int(i) => Yaml::Raw(i.to_string()),
            Setting::Float(x) => Yaml::Raw(float(*x)),
            Setting::Str(text) => Yaml::Text(text.clone()),
            Setting::Ints(items) => Yaml::Raw(format!("{items:?}")),
            Setting::Floats(items) => Yaml::Raw(row(items)),
            Setting::Table(rows) if rows.is_empty() => Yaml::Raw("[[]]".into()),
            Setting::Table(rows) => Yaml::List(rows.iter().map(|r| Yaml::Raw(row(r))).collect()),
        };
        map.put(path.as_str(), value);
    }
    map
}

fn programs<'a>(programs: impl Iterator<Item = &'a Program>) -> YamlMap {
    let mut map = YamlMap::default();
    for program in programs {
        let mut inner = YamlMap::default();
        inner.text("description", &program.description);
        inner.map("ports", ports(&program.ports));
        inner.map(
            "supported_settings",
            supported_settings(&program.supported_settings),
        );
        match program.base_env {
            BaseEnv::Manager => {}
            BaseEnv::Clean => inner.text("base_env", "clean"),
            BaseEnv::Login => inner.text("base_env", "login"),
        }
        inner.list("modules", &program.modules);
        if let Some(path) = &program.virtual_env {
            inner.text("virtual_env", &path.display().to_string());
        }
        let mut env = YamlMap::default();
        for (name, value) in &program.env {
            env.put(name.as_str(), Yaml::Text(value.clone()));
        }
        inner.map("env", env);
        match program.execution_model {
            ExecutionModel::Direct => {}
            ExecutionModel::OpenMpi => inner.text("execution_model", "openmpi"),
            ExecutionModel::Mpich => inner.text("execution_model", "mpich"),
            ExecutionModel::IntelMpi => inner.text("execution_model", "intelmpi"),
            ExecutionModel::SrunMpi => inner.text("execution_model", "srunmpi"),
            ExecutionModel::Manual => inner.text("execution_model", "manual"),
        }
        match &program.kind {
            ProgramKind::Executable(path) => inner.text("executable", &path.display().to_string()),
            ProgramKind::Script(script) => inner.put("script", Yaml::Text(script.clone())),
            ProgramKind::Manual => {}
            ProgramKind::BuiltIn(_) => continue,
            ProgramKind::Hosted(guest) => {
                let mut titin = YamlMap::default();
                titin.text("host", &guest.host);
                let key = if guest.steps { "step" } else { "function" };
                match &guest.call {
                    UserFunction::Python { module, function } => {
                        titin.text(key, &format!("{module}:{function}"))
                    }
                    UserFunction::Library { path, symbol } => {
                        titin.text("library", path.as_str());
                        titin.text(key, symbol.as_str());
                    }
                }
                inner.map("titin", titin);
            }
        }
        inner.list("args", &program.args);
        if !program.can_share_resources {
            inner.raw("can_share_resources", Some(false));
        }
        match program.keeps_state_for_next_use {
            KeepsState::Necessary => {}
            // In quotes, because a bare `no` is false to older readers of YAML.
            KeepsState::No => inner.text("keeps_state_for_next_use", "no"),
            KeepsState::Helpful => inner.text("keeps_state_for_next_use", "helpful"),
        }
        map.put(program.name.as_str(), Yaml::Map(inner));
    }
    map
}

fn resources(all: impl Iterator<Item = (String, ResourceRequest)>) -> YamlMap {
    let mut map = YamlMap::default();
    for (path, need) in all {
        let mut inner = YamlMap::default();
        let threads = match need {
            ResourceRequest::Threads(n) => {
                inner.raw("threads", Some(n));
                1
            }
            ResourceRequest::MpiCores {
                processes,
                threads_per_process,
            } => {
                inner.raw("mpi_processes", Some(processes));
                threads_per_process
            }
            ResourceRequest::MpiNodes {
                nodes,
                processes_per_node,
                threads_per_process,
            } => {
                inner.raw("nodes", Some(nodes));
                inner.raw("mpi_processes_per_node", Some(processes_per_node));
                threads_per_process
            }
        };
        inner.raw("threads_per_mpi_process", (threads > 1).then_some(threads));
        map.put(path, Yaml::Map(inner));
    }
    map
}

fn checkpoints(checkpoints: &Checkpoints) -> YamlMap {
    let mut map = YamlMap::default();
    map.raw("at_end", checkpoints.at_end.then_some(true));
    for (key, rules) in [
        ("simulation_time", &checkpoints.simulation_time),
        ("wallclock_time", &checkpoints.wallclock_time),
    ] {
        let rules: Vec<_> = rules
            .iter()
            .map(|rule| Yaml::Map(checkpoint_rule(rule)))
            .collect();
        if !rules.is_empty() {
            map.put(key, Yaml::List(rules));
        }
    }
    map
}

fn checkpoint_rule(rule: &CheckpointRule) -> YamlMap {
    let mut map = YamlMap::default();
    match rule {
        CheckpointRule::At(times) => {
            let times: Vec<_> = times.iter().map(|t| float(*t)).collect();
            map.raw("at", Some(format!("[{}]", times.join(", "))));
        }
        CheckpointRule::Every { every, start, stop } => {
            map.raw("every", Some(float(*every)));
            map.raw("start", start.map(float));
            map.raw("stop", stop.map(float));
        }
    }
    map
}

fn quantity(quantity: &Quantity) -> Yaml {
    let unit = match quantity.dimension {
        Dimension::NONE => return Yaml::Raw(float(quantity.value_si)),
        Dimension::LENGTH => "m",
        _ => "s",
    };
    Yaml::Text(format!("{} {unit}", float(quantity.value_si)))
}

fn extras(extras: &Extras) -> YamlMap {
    let mut top = YamlMap::default();
    let mut section = YamlMap::default();
    for (path, scales) in &extras.scales {
        let mut inner = YamlMap::default();
        for (key, value) in [("dt", &scales.dt), ("total", &scales.total)] {
            if let Some(value) = value {
                inner.put(key, quantity(value));
            }
        }
        for (key, values) in [("dx", &scales.dx), ("extent", &scales.extent)] {
            if !values.is_empty() {
                inner.put(key, Yaml::List(values.iter().map(quantity).collect()));
            }
        }
        section.put(path.as_str(), Yaml::Map(inner));
    }
    top.map("scales", std::mem::take(&mut section));
    for (path, stage) in &extras.stage {
        let mut inner = YamlMap::default();
        inner.list("in", &stage.input);
        inner.list("out", &stage.output);
        section.put(path.as_str(), Yaml::Map(inner));
    }
    top.map("stage", std::mem::take(&mut section));
    if let Some(unit) = &extras.time_unit {
        top.text("time_unit", unit);
    }
    for (path, progress) in &extras.progress {
        let end = match &progress.end {
            EndTime::Time(time) => quantity(time),
            EndTime::Setting(name) => Yaml::Text(name.to_string()),
        };
        section.put(path.as_str(), end);
    }
    top.map("progress", std::mem::take(&mut section));
    for (name, filter) in &extras.filters {
        let mut inner = YamlMap::default();
        match &filter.call {
            UserFunction::Python { module, function } => {
                inner.text("python", &format!("{module}:{function}"))
            }
            UserFunction::Library { path, symbol } => {
                inner.text("library", path);
                inner.text("symbol", symbol);
            }
        }
        inner.text(
            "side",
            filter.side.map_or("", |side| {
                if side == FilterSide::Sender {
                    "sender"
                } else {
                    "receiver"
                }
            }),
        );
        section.put(name.as_str(), Yaml::Map(inner));
    }
    top.map("filters", std::mem::take(&mut section));
    if extras.buffer.default != BufferLimits::default() {
        section.map("default", buffer(extras.buffer.default));
    }
    for (path, (limits, _)) in &extras.buffer.ports {
        section.put(path.as_str(), Yaml::Map(buffer(*limits)));
    }
    top.map("buffer", std::mem::take(&mut section));
    for (path, pinned) in &extras.medium {
        section.text(path, pinned.medium.key());
    }
    top.map("medium", std::mem::take(&mut section));
    for (path, (pattern, _)) in &extras.fields {
        section.put(path.as_str(), Yaml::Map(field(pattern)));
    }
    top.map("fields", std::mem::take(&mut section));
    for (key, time) in [
        ("grace", extras.grace),
        ("heartbeat", extras.heartbeat),
        ("register_timeout", extras.register_timeout),
    ] {
        if let Some(time) = time {
            top.put(key, quantity(&time));
        }
    }
    for (name, required) in &extras.required {
        section.list(name, required.ports.iter().map(|port| port.to_string()));
    }
    top.map("required", std::mem::take(&mut section));
    if extras.links.default != LinkTuning::default() {
        section.map("default", link(extras.links.default));
    }
    for (path, (settings, _)) in &extras.links.components {
        section.put(path.as_str(), Yaml::Map(link(*settings)));
    }
    top.map("links", section);
    top
}

fn field(pattern: &Pattern) -> YamlMap {
    let mut map = YamlMap::default();
    if let Some(cache) = pattern.cache() {
        map.text("mode", "pull");
        map.raw("versions", Some(cache.versions));
        map.text(
            "full",
            if cache.full == WhenFull::Wait {
                "wait"
            } else {
                "evict"
            },
        );
    }
    if pattern.sender == pattern.receiver {
        share(&mut map, &pattern.sender);
        return map;
    }
    for (key, end) in [("sender", &pattern.sender), ("receiver", &pattern.receiver)] {
        let mut inner = YamlMap::default();
        share(&mut inner, end);
        map.map(key, inner);
    }
    map
}

fn share(map: &mut YamlMap, share: &PatternSide) {
    let Steps { from, until, every } = share.steps;
    map.raw("from", (from != 1).then_some(from));
    map.raw("until", until);
    map.raw("every", (every != 1).then_some(every));
    if let Some((lower, upper)) = &share.region {
        map.raw("region", Some(format!("[{lower:?}, {upper:?}]")));
    }
}

fn link(link: LinkTuning) -> YamlMap {
    let mut map = YamlMap::default();
    map.raw("streams", link.streams);
    map.raw("pacing", link.pacing);
    map.raw("send_buffer", link.send_buffer);
    map.raw("receive_buffer", link.receive_buffer);
    map
}

fn buffer(buffer: BufferLimits) -> YamlMap {
    let mut map = YamlMap::default();
    map.raw("messages", buffer.messages);
    map.raw("bytes", buffer.bytes);
    map
}
