//! Settings: each must have a reader, and a value of the type that the reader supports.

use std::collections::{BTreeSet, HashMap};

use super::paths::{PathTarget, walk};
use crate::built_in::{AcceptedValue, BuiltIn};
use crate::description::{Description, Model, SupportedSetting};
use crate::muscle_settings;
use crate::names::{InstanceName, Name};
use crate::network::{Network, NetworkComponent};
use crate::problem::{Code, Problems, TextPosition, did_you_mean, listing};
use crate::settings::{Setting, SettingType, Settings};

type Supported = indexmap::IndexMap<Name, SupportedSetting>;

pub(super) fn check(
    description: &Description,
    root: &Model,
    network: &Network,
    problems: &mut Problems,
) {
    if description.settings.is_empty() {
        return;
    }
    let readers = Readers::new(description, root, network);
    for (path, value, at) in description.settings.entries() {
        if problems.is_full() {
            return;
        }
        readers.check_path(path, value, at, problems);
    }
    check_types(description, root, network, problems);
}

/// The models that implement components of the network, by path.
fn nested<'d>(
    description: &'d Description,
    root: &'d Model,
    network: &Network,
) -> Vec<(String, &'d Model)> {
    let mut paths: BTreeSet<&str> = BTreeSet::new();
    for component in &network.components {
        paths.extend(
            component
                .path
                .match_indices('.')
                .map(|(dot, _)| &component.path[..dot]),
        );
    }
    let models = paths
        .into_iter()
        .filter_map(|path| match walk(description, root, path) {
            PathTarget::Component(_, Some(model)) => Some((path.to_string(), model)),
            _ => None,
        });
    models.collect()
}

/// The settings that each component reads.
struct Readers<'a> {
    network: &'a Network,
    root: &'a Model,
    /// Whether components may be missing, so that a setting of one is no mistake.
    allow_missing: bool,
    /// The settings that the components at each path read; `None` if a component does not list its
    /// settings.
    by_path: HashMap<&'a str, Option<BTreeSet<&'a str>>>,
    /// All settings that any component lists.
    known: BTreeSet<&'a str>,
}

/// The built-in component that implements a component, if there is one.
fn built_in(component: &NetworkComponent) -> Option<BuiltIn> {
    BuiltIn::from_name(component.implementation.as_ref()?)
}

/// The settings that a component's program lists; `None` if the program lists none.
pub(super) fn supported<'a>(
    description: &'a Description,
    component: &NetworkComponent,
) -> Option<&'a Supported> {
    let program = description
        .programs
        .get(component.implementation.as_ref()?)?;
    Some(&program.supported_settings).filter(|settings| !settings.is_empty())
}

impl<'a> Readers<'a> {
    fn new(description: &'a Description, root: &'a Model, network: &'a Network) -> Self {
        let mut readers = Readers {
            network,
            root,
            allow_missing: description.allow_missing,
            by_path: HashMap::new(),
            known: root.supported_settings.keys().map(|n| n.as_str()).collect(),
        };
        for component in &network.components {
            readers.add_component(description, component);
        }
        // Models that list supported settings count as readers too.
        readers.add_model(String::new(), root);
        for (path, model) in nested(description, root, network) {
            readers.add_model(path, model);
        }
        readers
    }

    /// Adds the settings that a component reads. A setting given to a whole model, or to a
    /// component that a model implements, is read by all components inside.
    fn add_component(&mut self, description: &'a Description, component: &'a NetworkComponent) {
        let names: Option<BTreeSet<&str>> = match built_in(component) {
            Some(built_in) => Some(built_in.settings().iter().map(|(name, _)| *name).collect()),
            None => supported(description, component)
                .map(|settings| settings.keys().map(|n| n.as_str()).collect()),
        };
        self.known.extend(names.iter().flatten());
        let path = component.path.as_str();
        let dots = path.match_indices('.').map(|(dot, _)| dot);
        for end in [0].into_iter().chain(dots).chain([path.len()]) {
            let all = self.by_path.entry(&path[..end]);
            match (all.or_insert_with(|| Some(BTreeSet::new())), &names) {
                (Some(all), Some(names)) => all.extend(names),
                (all, _) => *all = None,
            }
        }
    }

    /// Adds the settings that a model lists. They can be given to the model, or to any model around.
    fn add_model(&mut self, path: String, model: &'a Model) {
        for name in model.supported_settings.keys() {
            self.known.insert(name);
            let around = std::iter::successors(Some(path.as_str()), |path| {
                (!path.is_empty()).then(|| path.rsplit_once('.').map_or("", |(outer, _)| outer))
            });
            for path in around {
                if let Some(Some(all)) = self.by_path.get_mut(path) {
                    all.insert(name);
                }
            }
        }
    }

    /// Splits a path after the longest component name: `a.b[1].x` gives `a.b[1]`, `a.b` and `x`.
    /// Without a component the whole path is the name of the setting.
    fn split<'p>(&self, path: &'p str) -> (&'p str, &'p str, &'p str) {
        path.rmatch_indices('.')
            .map(|(dot, _)| {
                let instance = &path[..dot];
                (
                    instance,
                    instance.split('[').next().unwrap_or_default(),
                    &path[dot + 1..],
                )
            })
            .find(|(instance, component, _)| {
                // Indices come at the end of an instance's name, so `a[1].b` names none.
                self.by_path.contains_key(component) && !instance[component.len()..].contains('.')
            })
            .unwrap_or(("", "", path))
    }

    fn check_path(&self, path: &str, value: &Setting, at: TextPosition, problems: &mut Problems) {
        let (instance, component, name) = self.split(path);
        let is_model = !component.is_empty() && self.network.component(component).is_none();
        if is_model && instance != component {
            self.no_instance_of_model(path, component, at, problems);
            return;
        }
        if !instance.is_empty() && !self.check_instance(instance, component, at, problems) {
            return;
        }
        if component.is_empty()
            && let Some((word, rest)) = name.split_once('.')
        {
            self.lost(path, word, rest, at, problems);
        } else if is_model
            && self.by_path.get(component) == Some(&None)
            && let Some((word, _)) = name.split_once('.')
        {
            self.lost_within(path, component, word, at, problems);
        } else if path.ends_with(']') {
            let why = "a setting has no index; an instance is chosen before its name, as in \"macro[3].dt\"";
            problems.error(
                at,
                Code::BadName,
                format!("\"{path}\" cannot be a setting"),
                why,
            );
        } else if name.starts_with("muscle_") {
            check_muscle(path, name, value, at, problems);
        } else {
            // Built-in components have settings for each port.
            let own = self
                .network
                .component(component)
                .filter(|component| built_in(component).is_some());
            let of_port = own.and_then(|own| {
                name.split_once('.')
                    .filter(|(port, _)| own.ports.contains_key(*port))
                    .map(|(_, name)| name)
            });
            self.check_name(path, component, of_port.unwrap_or(name), at, problems);
        }
    }

    /// Reports a setting `name` of `component` that has no reader. An empty `component` stands for
    /// all components.
    fn check_name(
        &self,
        path: &str,
        component: &str,
        name: &str,
        at: TextPosition,
        problems: &mut Problems,
    ) {
        match self.by_path.get(component) {
            Some(Some(known)) if !known.contains(name) => {
                let all = || known.iter().copied();
                let near = did_you_mean(name, all());
                let hint = near.unwrap_or_else(|| format!("known there: {}", listing(all())));
                let what = format!("nothing reads setting \"{path}\"");
                let why = self.why_unread(component, name);
                problems.error_hint(at, Code::UnknownSetting, what, why, hint);
            }
            Some(None) if !self.known.contains(name) => {
                if let Some(hint) = did_you_mean(name, self.known.iter().copied()) {
                    let what = format!("setting \"{path}\" may be misspelt");
                    let why =
                        "no program says that it reads it; one that does not list its settings may";
                    problems.warn(at, Code::UnknownSetting, what, why, hint);
                }
            }
            _ => {}
        }
    }

    fn why_unread(&self, component: &str, name: &str) -> String {
        let programs = match self.network.component(component).and_then(built_in) {
            Some(built_in) => return format!("{} has no setting \"{name}\"", built_in.name()),
            None if component.is_empty() => format!("in model \"{}\"", self.network.model),
            None => format!("of \"{component}\""),
        };
        format!("no program {programs} lists \"{name}\" under \"supported_settings\"")
    }

    /// Whether the instance in a path exists; reports an instance that does not.
    fn check_instance(
        &self,
        front: &str,
        plain: &str,
        at: TextPosition,
        problems: &mut Problems,
    ) -> bool {
        if front == plain {
            return true;
        }
        let Ok(instance) = front.parse::<InstanceName>() else {
            return true;
        };
        let sizes = match self.network.component(plain) {
            Some(component) => component.multiplicity.as_slice(),
            None => return true,
        };
        let indices = instance.indices();
        if indices.len() <= sizes.len() && indices.iter().zip(sizes).all(|(i, size)| i < size) {
            return true;
        }
        let why = match sizes {
            [] => format!("component \"{plain}\" is one instance, without an index"),
            sizes => {
                format!("component \"{plain}\" has multiplicity {sizes:?}; indices begin at 0")
            }
        };
        problems.error(
            at,
            Code::UnknownSetting,
            format!("there is no instance \"{front}\""),
            why,
        );
        false
    }

    /// Reports an index on a component that a model implements. The components inside the model are
    /// the instances, and carry all indices.
    fn no_instance_of_model(
        &self,
        path: &str,
        component: &str,
        at: TextPosition,
        problems: &mut Problems,
    ) {
        let why = format!(
            "\"{component}\" is implemented by a model; indices stand behind the names of the components within it"
        );
        let rest = &path[component.len()..];
        let inner = self.within(component).next();
        let hint = inner.map(|inner| match rest.split_once("].") {
            Some((indices, name)) if !name.contains('.') => {
                format!("for one of them write for instance \"{inner}{indices}].{name}\"")
            }
            _ => format!("an instance within it is named like \"{inner}[0]\""),
        });
        problems.error_hint(
            at,
            Code::UnknownSetting,
            format!("nothing reads setting \"{path}\""),
            why,
            hint,
        );
    }

    /// Reports a path into a model that has no component `word`.
    fn lost_within(
        &self,
        path: &str,
        component: &str,
        word: &str,
        at: TextPosition,
        problems: &mut Problems,
    ) {
        let plain = word.split('[').next().unwrap_or_default();
        let why = format!("the model that implements \"{component}\" has no component \"{plain}\"");
        let inner = self.within(component);
        let names: Vec<&str> = inner.map(|inner| &inner[component.len() + 1..]).collect();
        let hint = format!("its components are {}", listing(names.iter().copied()));
        self.report_no_component(path, why, did_you_mean(plain, names), hint, at, problems);
    }

    /// The paths of the components inside a component that a model implements.
    fn within(&self, component: &str) -> impl Iterator<Item = &'a str> {
        let inside = move |path: &&str| {
            path.strip_prefix(component)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        self.network
            .components
            .iter()
            .map(|component| component.path.as_str())
            .filter(inside)
    }

    /// Reports a path whose first word, `word`, is no component.
    fn lost(&self, path: &str, word: &str, rest: &str, at: TextPosition, problems: &mut Problems) {
        let plain = word.split('[').next().unwrap_or_default();
        if self.root.name == plain {
            let why = "paths of settings begin with a component, not with the model's name";
            let near = Some(format!("did you mean \"{rest}\"?"));
            return self.report_no_component(path, why.into(), near, String::new(), at, problems);
        }
        if self.root.components.contains_key(plain) {
            let why = format!("component \"{plain}\" is left out");
            let what = format!("nothing reads setting \"{path}\"");
            return problems.warn(at, Code::UnknownSetting, what, why, None);
        }
        let why = format!("model \"{}\" has no component \"{plain}\"", self.root.name);
        let names = self.by_path.keys().copied();
        let mut names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        let hint = format!("the components are {}", listing(names.iter().copied()));
        self.report_no_component(path, why, did_you_mean(plain, names), hint, at, problems);
    }

    /// Reports a path that leads to no component: an error if `near` says what was meant, and else a
    /// warning with a hint. A path to a component that may be missing has a warning.
    fn report_no_component(
        &self,
        path: &str,
        why: String,
        near: Option<String>,
        hint: String,
        at: TextPosition,
        problems: &mut Problems,
    ) {
        let what = format!("setting \"{path}\" belongs to no component");
        match near {
            Some(near) if !self.allow_missing => {
                problems.error_hint(at, Code::UnknownSetting, what, why, near);
            }
            near => {
                let hint = near.unwrap_or(hint);
                problems.warn(at, Code::UnknownSetting, what, why, hint);
            }
        }
    }
}

/// Checks a setting of MUSCLE3. Problems are warnings only, since files of other couplers must
/// load.
fn check_muscle(
    path: &str,
    name: &str,
    value: &Setting,
    at: TextPosition,
    problems: &mut Problems,
) {
    let no_effect = format!("setting \"{path}\" has no effect");
    let mut known = muscle_settings::NAMES.iter();
    match known.find(|(known, _)| *known == name) {
        None => {
            let what = format!("there is no setting \"{name}\"");
            let why =
                "names that begin with \"muscle_\" are those of settings that the coupler reads";
            let hint = did_you_mean(name, muscle_settings::NAMES.map(|(name, _)| name));
            problems.warn(at, Code::UnknownSetting, what, why, hint);
        }
        Some((_, Some(why))) => {
            problems.warn(at, Code::UnknownSetting, no_effect, *why, None);
        }
        Some((_, None)) => {
            if let Some(wanted) = muscle_settings::wanted(name, value) {
                let why = format!("it takes {wanted}; found {value}");
                problems.warn(at, Code::SettingType, no_effect, why, None);
            }
        }
    }
}

/// Each value that a component reads must have the type that the program supports.
fn check_types(
    description: &Description,
    root: &Model,
    network: &Network,
    problems: &mut Problems,
) {
    let given = GivenSettings::new(&description.settings);
    for component in &network.components {
        if let Some(built_in) = built_in(component) {
            check_built_in(&given, component, built_in, problems);
        }
    }
    let nested = nested(description, root, network);
    for (path, model) in std::iter::once((String::new(), root)).chain(nested) {
        let reader = match path.as_str() {
            "" => format!("model \"{}\"", model.name),
            path => implements(&model.name, path),
        };
        let whole = InstanceName::new(path.as_str(), Vec::new());
        for (name, setting) in &model.supported_settings {
            if let Some((path, _)) = given.settings.find_entry(&whole, name) {
                given.check_type(path, setting.of, &reader, name, problems);
            }
        }
    }
    for component in &network.components {
        if let Some(supported) = supported(description, component) {
            check_component(&given, component, supported, problems);
        }
    }
}

/// Checks the settings of a component, for the whole component and for single instances.
fn check_component(
    given: &GivenSettings<'_>,
    component: &NetworkComponent,
    supported: &Supported,
    problems: &mut Problems,
) {
    let implementation = component.implementation.as_deref().unwrap_or_default();
    let reader = implements(implementation, &component.path);
    let whole = InstanceName::new(component.path.clone(), Vec::new());
    for (name, setting) in supported {
        let of_whole = given
            .settings
            .find_entry(&whole, name)
            .map(|(path, _)| path);
        let of_instances = given.of_instances(&component.path, name);
        for path in of_whole.into_iter().chain(of_instances) {
            given.check_type(path, setting.of, &reader, name, problems);
        }
    }
}

fn implements(implementation: &str, component: &str) -> String {
    format!("\"{implementation}\", which implements component \"{component}\",")
}

/// The settings of a description, with quick access to positions and to settings of instances.
struct GivenSettings<'s> {
    settings: &'s Settings,
    positions: HashMap<&'s Name, TextPosition>,
    /// The paths that begin with an instance, by the component.
    by_component: HashMap<&'s str, Vec<&'s Name>>,
}

impl<'s> GivenSettings<'s> {
    fn new(settings: &'s Settings) -> Self {
        let mut by_component: HashMap<&str, Vec<&Name>> = HashMap::new();
        for (path, _) in settings.iter().filter(|(path, _)| path.contains('[')) {
            let component = path.split('[').next().unwrap_or_default();
            by_component.entry(component).or_default().push(path);
        }
        let positions = settings.entries().map(|(path, _, at)| (path, at)).collect();
        GivenSettings {
            settings,
            positions,
            by_component,
        }
    }

    /// The paths of a setting of single instances of a component.
    fn of_instances(&self, component: &str, name: &str) -> impl Iterator<Item = &'s Name> {
        let paths = self
            .by_component
            .get(component)
            .into_iter()
            .flatten()
            .copied();
        paths.filter(move |path| path.rsplit_once("].").is_some_and(|(_, last)| last == name))
    }

    /// The given paths of settings of a built-in component and of its ports, each with the number of
    /// the setting.
    fn of_built_in(
        &self,
        component: &NetworkComponent,
        built_in: BuiltIn,
    ) -> BTreeSet<(&'s Name, usize)> {
        let whole = InstanceName::new(component.path.clone(), Vec::new());
        let mut paths = BTreeSet::new();
        for (row, (name, _)) in built_in.settings().iter().enumerate() {
            let of_ports = component.ports.keys().map(|port| format!("{port}.{name}"));
            for name in of_ports.chain([name.to_string()]) {
                let of_whole = self.settings.find_entry(&whole, &name);
                let of_whole = of_whole.map(|(path, _)| path).into_iter();
                let of_instances = self.of_instances(&component.path, &name);
                paths.extend(of_whole.chain(of_instances).map(|path| (path, row)));
            }
        }
        paths
    }

    fn position(&self, path: &Name) -> TextPosition {
        self.positions.get(path).copied().unwrap_or_default()
    }

    /// Reports a value that does not have the type that `reader` supports.
    fn check_type(
        &self,
        path: &Name,
        of: SettingType,
        reader: &str,
        name: &str,
        problems: &mut Problems,
    ) {
        let Some(value) = self.settings.value(path).filter(|value| !value.fits(of)) else {
            return;
        };
        let found = value.setting_type();
        let why = format!("{reader} reads \"{name}\" as {of}; found {value}, which is {found}");
        let hint = (of == SettingType::Float && found == SettingType::Str)
            .then(|| "a number, or one with a unit such as \"10 ms\", would do".to_string());
        let what = format!("setting \"{path}\" has the wrong type");
        problems.error_hint(self.position(path), Code::SettingType, what, why, hint);
    }
}

/// Checks the settings of a built-in component: for the whole component, for a port, and for single
/// instances.
fn check_built_in(
    given: &GivenSettings<'_>,
    component: &NetworkComponent,
    built_in: BuiltIn,
    problems: &mut Problems,
) {
    for (path, row) in given.of_built_in(component, built_in) {
        let (name, accepted) = built_in.settings()[row];
        let Some(value) = given.settings.value(path) else {
            continue;
        };
        if accepted.accepts(value) {
            continue;
        }
        let (built_in, component) = (built_in.name(), &component.path);
        let why = format!(
            "{built_in}, which implements component \"{component}\", takes for \"{name}\" {accepted}; found {value}"
        );
        let hint = match (accepted, value) {
            (AcceptedValue::Word(words), Setting::Str(word)) => {
                did_you_mean(word, words.iter().copied())
            }
            _ => None,
        };
        let what = format!("setting \"{path}\" does not fit");
        problems.error_hint(given.position(path), Code::SettingType, what, why, hint);
    }
}
