//! Writes a description as yMMSL v0.2.

use indexmap::IndexMap;

use crate::description::{
    BaseEnv, CheckpointRule, Checkpoints, Component, Conduit, CustomImplementation, Description,
    ExecutionModel, HostedFunction, KeepsState, MatchingTimelines, Model, Ports, Program,
    ProgramKind, ResourceRequest, Resources, SETTINGS_IN, SupportedSetting,
};
use crate::emit::{Yaml, YamlMap, float};
use crate::filter::FilterSide;
use crate::names::Name;
use crate::operator::{Operator, Timeline};
use crate::pattern::{Pattern, PatternSide, Steps, WhenFull};
use crate::quantity::{Dimension, Quantity};
use crate::settings::{Setting, Settings};
use crate::titin_section::{
    AgentStart, BatchJob, BufferLimits, Buffers, Compress, EndTime, Ensemble, Extras,
    FilterDefinition, Host, LinkTuning, Links, PinnedMedium, Scales, Site, StagedFiles,
    UserFunction,
};

impl Description {
    /// The description as one yMMSL v0.2 file, imports included.
    pub fn to_ymmsl(&self) -> String {
        let mut top = begin(&self.description);
        let mut models = YamlMap::default();
        for model in self.models.values() {
            models.put(model.name.as_str(), model_map(model));
        }
        top.map("models", models);
        top.map(
            "custom_implementations",
            custom_implementations(&self.custom_implementations),
        );
        top.map("settings", settings(&self.settings));
        top.map("programs", programs(self.programs.values().map(|p| &**p)));
        top.map("resources", resources(&self.resources));
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

fn model_map(model: &Model) -> YamlMap {
    let mut map = YamlMap::default();
    map.text("description", &model.description);
    map.map("ports", ports(&model.ports));
    map.map(
        "supported_settings",
        supported_settings(&model.supported_settings),
    );
    let mut components = YamlMap::default();
    for component in model.components.values() {
        components.put(component.name.as_str(), component_map(component));
    }
    map.map("components", components);
    map.map(
        "matching_timelines",
        matching_timelines(&model.matching_timelines),
    );
    map.map("conduits", conduits(&model.conduits));
    map
}

fn custom_implementations(custom: &IndexMap<Name, CustomImplementation>) -> YamlMap {
    let mut map = YamlMap::default();
    for (path, entry) in custom {
        let value = match &entry.implementation {
            Some(name) => Yaml::Text(name.to_string()),
            None => Yaml::Raw("null".into()),
        };
        map.put(path.as_str(), value);
    }
    map
}

fn component_map(component: &Component) -> YamlMap {
    let mut map = YamlMap::default();
    map.put("description", Yaml::Text(component.description.clone()));
    // Without ports in the file, the reader guesses again. A written guess would count as a fact.
    if !component.ports.values().any(|port| port.guessed) {
        map.put("ports", ports(&component.ports));
    }
    if let Some(name) = &component.implementation {
        map.text("implementation", name.as_str());
    }
    match component.multiplicity.as_slice() {
        [] => {}
        [one] => map.raw("multiplicity", Some(one)),
        sizes => map.raw("multiplicity", Some(format!("{sizes:?}"))),
    }
    if component.optional {
        map.raw("optional", Some(true));
    }
    map
}

fn ports(ports: &Ports) -> YamlMap {
    let mut map = YamlMap::default();
    for operator in Operator::ALL {
        map.text(
            operator.key(),
            &port_names(ports, operator, &Timeline::default()),
        );
    }
    let mut timelines: Vec<&Timeline> = Vec::new();
    for port in ports.values().filter(|port| !port.timeline.is_root()) {
        if !timelines.contains(&&port.timeline) {
            timelines.push(&port.timeline);
        }
    }
    for timeline in timelines {
        let mut inner = YamlMap::default();
        for operator in [Operator::OI, Operator::S] {
            inner.text(operator.key(), &port_names(ports, operator, timeline));
        }
        map.map(&format!("timeline {timeline}"), inner);
    }
    map
}

/// The names of the ports of an operator on a timeline, with blanks between.
fn port_names(ports: &Ports, operator: Operator, timeline: &Timeline) -> String {
    let listed = ports
        .values()
        .filter(|p| p.operator == operator && p.timeline == *timeline && p.name != SETTINGS_IN);
    listed
        .map(|port| port.name.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

fn supported_settings(settings: &IndexMap<Name, SupportedSetting>) -> YamlMap {
    let mut map = YamlMap::default();
    for (name, setting) in settings {
        let mut inner = YamlMap::default();
        inner.put("type", Yaml::Raw(setting.of.key().into()));
        inner.text("description", &setting.description);
        map.put(name.as_str(), inner);
    }
    map
}

fn matching_timelines(matching: &[MatchingTimelines]) -> YamlMap {
    let mut map = YamlMap::default();
    for timelines in matching {
        map.list(
            &timelines.head.to_string(),
            timelines.others.iter().map(ToString::to_string),
        );
    }
    map
}

fn conduits(conduits: &[Conduit]) -> YamlMap {
    let mut by_sender: IndexMap<String, Vec<String>> = IndexMap::new();
    for conduit in conduits {
        let mut words: Vec<String> = conduit.filters.iter().map(ToString::to_string).collect();
        words.push(conduit.receiver.to_string());
        by_sender
            .entry(conduit.sender.to_string())
            .or_default()
            .push(words.join(" "));
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
        map.put(path.as_str(), setting(value));
    }
    map
}

fn setting(value: &Setting) -> Yaml {
    match value {
        Setting::Bool(b) => Yaml::Raw(b.to_string()),
        Setting::Int(i) => Yaml::Raw(i.to_string()),
        Setting::Float(x) => Yaml::Raw(float(*x)),
        Setting::Str(text) => Yaml::Text(text.clone()),
        Setting::Ints(items) => Yaml::Raw(format!("{items:?}")),
        Setting::Floats(items) => floats(items),
        Setting::Table(rows) if rows.is_empty() => Yaml::Raw("[[]]".into()),
        Setting::Table(rows) => Yaml::List(rows.iter().map(|row| floats(row)).collect()),
    }
}

/// A list of numbers on one line.
fn floats(numbers: &[f64]) -> Yaml {
    let numbers: Vec<String> = numbers.iter().map(|x| float(*x)).collect();
    Yaml::Raw(format!("[{}]", numbers.join(", ")))
}

fn programs<'a>(programs: impl Iterator<Item = &'a Program>) -> YamlMap {
    let mut map = YamlMap::default();
    for program in programs.filter(|p| !matches!(p.kind, ProgramKind::BuiltIn(_))) {
        map.put(program.name.as_str(), program_map(program));
    }
    map
}

fn program_map(program: &Program) -> YamlMap {
    let mut map = YamlMap::default();
    map.text("description", &program.description);
    map.map("ports", ports(&program.ports));
    map.map(
        "supported_settings",
        supported_settings(&program.supported_settings),
    );
    environment(&mut map, program);
    map.text("execution_model", execution_model(program.execution_model));
    match &program.kind {
        ProgramKind::Executable(path) => map.text("executable", &path.display().to_string()),
        ProgramKind::Script(script) => map.put("script", Yaml::Text(script.clone())),
        ProgramKind::Manual | ProgramKind::BuiltIn(_) => {}
        ProgramKind::Hosted(function) => map.map("titin", hosted_function(function)),
    }
    map.list("args", &program.args);
    if !program.can_share_resources {
        map.raw("can_share_resources", Some(false));
    }
    match program.keeps_state_for_next_use {
        KeepsState::Necessary => {}
        // In quotes, because a bare `no` is false to older readers of YAML.
        KeepsState::No => map.text("keeps_state_for_next_use", "no"),
        KeepsState::Helpful => map.text("keeps_state_for_next_use", "helpful"),
    }
    map
}

fn environment(map: &mut YamlMap, program: &Program) {
    match program.base_env {
        BaseEnv::Manager => {}
        BaseEnv::Clean => map.text("base_env", "clean"),
        BaseEnv::Login => map.text("base_env", "login"),
    }
    map.list("modules", &program.modules);
    if let Some(path) = &program.virtual_env {
        map.text("virtual_env", &path.display().to_string());
    }
    let mut variables = YamlMap::default();
    for (name, value) in &program.env {
        variables.put(name.as_str(), Yaml::Text(value.clone()));
    }
    map.map("env", variables);
}

/// The key of an execution model; empty for the default.
fn execution_model(model: ExecutionModel) -> &'static str {
    match model {
        ExecutionModel::Direct => "",
        ExecutionModel::OpenMpi => "openmpi",
        ExecutionModel::Mpich => "mpich",
        ExecutionModel::IntelMpi => "intelmpi",
        ExecutionModel::SrunMpi => "srunmpi",
        ExecutionModel::Manual => "manual",
    }
}

fn hosted_function(hosted: &HostedFunction) -> YamlMap {
    let mut map = YamlMap::default();
    map.text("host", &hosted.host);
    let key = if hosted.steps { "step" } else { "function" };
    user_function(&mut map, &hosted.call, key, key);
    map
}

/// Writes a function of the user, under the key for a function in Python, or the key for a symbol.
fn user_function(map: &mut YamlMap, call: &UserFunction, in_python: &str, in_library: &str) {
    match call {
        UserFunction::Python { module, function } => {
            map.text(in_python, &format!("{module}:{function}"));
        }
        UserFunction::Library { path, symbol } => {
            map.text("library", path);
            map.text(in_library, symbol);
        }
    }
}

fn resources(resources: &IndexMap<Name, Resources>) -> YamlMap {
    let mut map = YamlMap::default();
    for (path, resources) in resources {
        let mut inner = YamlMap::default();
        let threads = match resources.need {
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
        map.put(path.as_str(), inner);
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
    top.map("scales", map_of(&extras.scales, scales_map));
    top.map("stage", map_of(&extras.stage, stage_map));
    if let Some(unit) = &extras.time_unit {
        top.text("time_unit", unit);
    }
    let progress = map_of(&extras.progress, |progress| end_time(&progress.end));
    top.map("progress", progress);
    top.map("ensemble", map_of(&extras.ensemble, ensemble));
    top.map("filters", map_of(&extras.filters, filter_definition));
    top.map("buffer", buffers(&extras.buffer));
    let medium = |pinned: &PinnedMedium| Yaml::Text(pinned.medium.key().into());
    top.map("medium", map_of(&extras.medium, medium));
    if let Some(folder) = &extras.folder {
        top.text("folder", folder);
    }
    let fields = map_of(&extras.fields, |(pattern, _)| field(pattern));
    top.map("fields", fields);
    times(&mut top, extras);
    top.map("required", required(extras));
    top.map("links", links(&extras.links));
    top.map("hosts", map_of(&extras.hosts, host));
    top.map("sites", map_of(&extras.sites, site));
    top
}

fn ensemble(ensemble: &Ensemble) -> YamlMap {
    let mut map = YamlMap::default();
    map.raw("allow_failures", Some(ensemble.allow_failures));
    map.raw("retry", Some(ensemble.retry));
    map.raw("at_once", ensemble.at_once);
    map
}

fn site(site: &Site) -> YamlMap {
    let mut map = YamlMap::default();
    map.text("relay", &site.relay);
    map
}

fn host(host: &Host) -> YamlMap {
    let mut map = YamlMap::default();
    if let Some(site) = &host.site {
        map.text("site", site);
    }
    if let Some(address) = &host.address {
        map.text("address", address);
    }
    match &host.start {
        AgentStart::Ssh => {}
        AgentStart::Command(words) => map.list("start", words.iter().cloned()),
        AgentStart::Batch(job) => map.map("start", batch_job(job)),
        start => {
            let mut keys = AgentStart::KEYS.iter();
            let key = keys.find(|(_, with_key)| with_key == start);
            map.text("start", key.map_or("", |(key, _)| key));
        }
    }
    if let Some(titin) = &host.titin {
        map.text("titin", titin);
    }
    if let Some(folder) = &host.folder {
        map.text("folder", folder);
    }
    if let Some(cores) = host.cores {
        map.put("cores", Yaml::Raw(cores.to_string()));
    }
    if let Some(network) = &host.network {
        map.text("network", &network.to_string());
    }
    if !host.components.is_empty() {
        map.list(
            "components",
            host.components.iter().map(ToString::to_string),
        );
    }
    map
}

fn batch_job(job: &BatchJob) -> YamlMap {
    let mut map = YamlMap::default();
    map.text("batch", &job.system);
    map.put("time", quantity(&job.time));
    map.raw("nodes", job.nodes);
    map.raw("cores_per_node", job.cores_per_node);
    map.text("queue", job.queue.as_deref().unwrap_or_default());
    map.text("account", job.account.as_deref().unwrap_or_default());
    let mut options = YamlMap::default();
    for (name, value) in &job.options {
        options.put(name, Yaml::Text(value.clone()));
    }
    map.map("options", options);
    map.list("via", job.via.iter().cloned());
    map
}

fn times(top: &mut YamlMap, extras: &Extras) {
    let times = [
        ("grace", extras.grace),
        ("heartbeat", extras.heartbeat),
        ("register_timeout", extras.register_timeout),
        ("patience", extras.patience),
    ];
    for (key, time) in times {
        if let Some(time) = time {
            top.put(key, quantity(&time));
        }
    }
    if let Some(encrypt) = extras.encrypt {
        top.put("encrypt", Yaml::Raw(encrypt.to_string()));
    }
}

fn required(extras: &Extras) -> YamlMap {
    let mut required = YamlMap::default();
    for (name, ports) in &extras.required {
        required.list(name, ports.ports.iter().map(ToString::to_string));
    }
    required
}

fn buffers(buffers: &Buffers) -> YamlMap {
    let mut map = YamlMap::default();
    if buffers.default != BufferLimits::default() {
        map.map("default", buffer(buffers.default));
    }
    map.extend(map_of(&buffers.ports, |(limits, _)| buffer(*limits)));
    map
}

fn links(links: &Links) -> YamlMap {
    let mut map = YamlMap::default();
    if links.default != LinkTuning::default() {
        map.map("default", link(links.default));
    }
    map.extend(map_of(&links.components, |(tuning, _)| link(*tuning)));
    map
}

/// A mapping from the same keys to the YAML of the values.
fn map_of<T, Y: Into<Yaml>>(entries: &IndexMap<Name, T>, yaml: impl Fn(&T) -> Y) -> YamlMap {
    let mut map = YamlMap::default();
    for (key, value) in entries {
        map.put(key.as_str(), yaml(value));
    }
    map
}

fn scales_map(scales: &Scales) -> YamlMap {
    let mut map = YamlMap::default();
    for (key, value) in [("dt", &scales.dt), ("total", &scales.total)] {
        if let Some(value) = value {
            map.put(key, quantity(value));
        }
    }
    for (key, values) in [("dx", &scales.dx), ("extent", &scales.extent)] {
        if !values.is_empty() {
            map.put(key, Yaml::List(values.iter().map(quantity).collect()));
        }
    }
    map
}

fn stage_map(stage: &StagedFiles) -> YamlMap {
    let mut map = YamlMap::default();
    map.list("in", &stage.input);
    map.list("out", &stage.output);
    map
}

fn end_time(end: &EndTime) -> Yaml {
    match end {
        EndTime::Time(time) => quantity(time),
        EndTime::Setting(name) => Yaml::Text(name.to_string()),
    }
}

fn filter_definition(filter: &FilterDefinition) -> YamlMap {
    let mut map = YamlMap::default();
    user_function(&mut map, &filter.call, "python", "symbol");
    match filter.side {
        None => {}
        Some(FilterSide::Sender) => map.text("side", "sender"),
        Some(FilterSide::Receiver) => map.text("side", "receiver"),
    }
    map
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
    map.raw("compress", link.compress.map(Compress::key));
    map
}

fn buffer(buffer: BufferLimits) -> YamlMap {
    let mut map = YamlMap::default();
    map.raw("messages", buffer.messages);
    map.raw("bytes", buffer.bytes);
    map
}
