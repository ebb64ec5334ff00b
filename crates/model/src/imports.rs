//! Imports: modules found on a search path, and their models and programs under full dotted names.
//! A module `a.b` is a file `a/b.ymmsl` in one of the search directories, or a text in an installed
//! Python package that lists the module among the entry points of group `ymmsl.module`. Python is
//! not started: the text is read from the source of the package.

mod python;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use crate::built_in;
use crate::description::Model;
use crate::document::{Document, Import};
use crate::names::Name;
use crate::options::LoadOptions;
use crate::problem::{Code, Problems, TextPosition, did_you_mean, listing};

/// The longest chain of modules that import each other.
const DEEPEST: usize = 32;
/// The most modules that are read.
const MOST_MODULES: usize = 10_000;

/// Adds all imports to `document`, and gives every implementation the full name. Returns the names
/// of failed imports; the failures have been reported.
pub(crate) fn resolve(
    document: &mut Document,
    options: &LoadOptions,
    problems: &mut Problems,
) -> HashSet<Name> {
    let (loaded, missing) = (HashMap::new(), HashSet::new());
    let mut modules = Modules {
        options,
        loaded,
        open: Vec::new(),
        entry_points: None,
        missing,
    };
    modules.resolve(document, None, problems);
    modules.missing
}

struct Modules<'o> {
    options: &'o LoadOptions,
    /// Modules by name; `None` if the module could not be read, which has been reported.
    loaded: HashMap<Name, Option<Document>>,
    /// The modules that are being read, outermost first.
    open: Vec<Name>,
    entry_points: Option<Vec<python::EntryPoint>>,
    /// Names of failed imports; the failures have been reported.
    missing: HashSet<Name>,
}

impl Modules<'_> {
    /// Resolves the imports of a document. `module` is the name of the document; `None` for files
    /// that the user gave.
    fn resolve(&mut self, document: &mut Document, module: Option<&Name>, problems: &mut Problems) {
        let full = |name: &Name| match module {
            Some(module) => Name::from(format!("{module}.{name}")),
            None => name.clone(),
        };
        let described = document.models.keys().chain(document.programs.keys());
        let mut locals: HashMap<Name, Name> =
            described.map(|name| (name.clone(), full(name))).collect();
        let mut imported = Vec::new();
        for import in std::mem::take(&mut document.imports) {
            let name = Name::from(format!("{}.{}", import.module, import.name));
            let before = locals.insert(import.name.clone(), name.clone());
            if before.is_some_and(|before| before != name) {
                report_namesake(&import, problems);
            }
            self.load(&import, problems);
            imported.push((import, name));
        }
        rename(document, &locals, full);
        for (import, name) in imported {
            let taken = match self.loaded.get(&import.module) {
                Some(Some(module)) => take(document, module, &import, &name, problems),
                _ => false,
            };
            if !taken {
                self.missing.insert(name);
            }
        }
        customise(document, &locals, module, problems);
    }

    /// Loads the module of an import, or reports the failure.
    fn load(&mut self, import: &Import, problems: &mut Problems) {
        let module = &import.module;
        if self.loaded.contains_key(module) {
            return;
        }
        let what = format!("module \"{module}\" cannot be imported");
        if self.open.contains(module) {
            let chain: Vec<_> = self
                .open
                .iter()
                .chain([module])
                .map(|name| name.as_str())
                .collect();
            let why = format!("it imports itself: {}", chain.join(" -> "));
            problems.error(import.at, Code::Import, what, why);
            return;
        }
        if self.open.len() >= DEEPEST || self.loaded.len() >= MOST_MODULES {
            let why =
                format!("at most {MOST_MODULES} modules are read, and chains of {DEEPEST} of them");
            problems.error(import.at, Code::Limit, what, why);
            return;
        }
        self.open.push(module.clone());
        let document = self.find(import, &what, problems).map(|mut document| {
            self.resolve(&mut document, Some(module), problems);
            document
        });
        self.open.pop();
        self.loaded.insert(module.clone(), document);
    }

    fn find(&mut self, import: &Import, what: &str, problems: &mut Problems) -> Option<Document> {
        let module = &import.module;
        let options = self.options;
        let entry_points = self
            .entry_points
            .get_or_insert_with(|| python::entry_points(&options.site_packages));
        if let Some(entry) = entry_points
            .iter()
            .find(|entry| entry.module == module.as_str())
        {
            return installed_module(entry, import, what, problems);
        }
        let relative: PathBuf = module
            .split('.')
            .collect::<PathBuf>()
            .with_added_extension("ymmsl");
        let tried: Vec<PathBuf> = options
            .search
            .iter()
            .map(|directory| directory.join(&relative))
            .collect();
        if let Some(path) = tried.iter().find(|path| path.exists()) {
            let file = problems.add_file(path.display().to_string());
            return crate::read::file(path, file, problems);
        }
        let why = not_found(&relative, &tried, entry_points);
        let hint = meant_module(module, &tried, entry_points);
        problems.error_hint(import.at, Code::Import, what, why, hint);
        None
    }
}

fn report_namesake(import: &Import, problems: &mut Problems) {
    let what = format!("\"{}\" is both described and imported", import.name);
    let why = "an implementation is found by its name; rename one of them";
    problems.error(import.at, Code::Duplicate, what, why);
}

/// Reads a module from an installed Python package.
fn installed_module(
    entry: &python::EntryPoint,
    import: &Import,
    what: &str,
    problems: &mut Problems,
) -> Option<Document> {
    match python::text(entry) {
        Ok((path, text)) => {
            let file = problems.add_file(path.display().to_string());
            crate::read::document(&text, file, problems)
        }
        Err(why) => {
            let path = import.module.replace('.', "/");
            let hint = format!("save its text as {path}.ymmsl in a directory of YMMSL_PATH");
            problems.error_hint(import.at, Code::Import, what, why.to_string(), hint);
            None
        }
    }
}

/// The reason why a module was not found: the places that were searched.
fn not_found(relative: &Path, tried: &[PathBuf], installed: &[python::EntryPoint]) -> String {
    let mut why = match tried {
        [] => format!(
            "it would be a file {}, but YMMSL_PATH names no directory",
            relative.display()
        ),
        tried => {
            let tried: Vec<_> = tried
                .iter()
                .map(|path| format!("\n  {}", path.display()))
                .collect();
            format!("there is no file{}", tried.concat())
        }
    };
    if installed.is_empty() {
        why += "\nand no installed Python package has a module of this name";
    } else {
        let modules = installed.iter().map(|entry| entry.module.as_str());
        why += &format!("\ninstalled Python packages have {}", listing(modules));
    }
    why
}

/// The hint for a module that was not found: a module with a similar name.
fn meant_module(
    module: &Name,
    tried: &[PathBuf],
    installed: &[python::EntryPoint],
) -> Option<String> {
    let package = module
        .rsplit_once('.')
        .map_or(String::new(), |(package, _)| format!("{package}."));
    let beside: Vec<String> = beside(tried)
        .into_iter()
        .map(|name| format!("{package}{name}"))
        .collect();
    let installed = installed.iter().map(|entry| entry.module.as_str());
    did_you_mean(module, installed.chain(beside.iter().map(String::as_str)))
}

/// The last names of the modules beside the files that were tried.
fn beside(tried: &[PathBuf]) -> Vec<String> {
    let directories = tried
        .iter()
        .filter_map(|path| std::fs::read_dir(path.parent()?).ok());
    let files = directories
        .flat_map(|entries| entries.flatten().take(1000))
        .map(|entry| entry.path());
    let modules = files.filter(|path| path.extension().is_some_and(|e| e == "ymmsl"));
    let mut names: Vec<_> = modules
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_string()))
        .collect();
    names.sort();
    names
}

/// Gives the document's implementations their full names, in definitions and uses.
fn rename(document: &mut Document, locals: &HashMap<Name, Name>, full: impl Fn(&Name) -> Name) {
    let used = |name: &mut Name| {
        if let Some(full) = locals.get(name) {
            *name = full.clone();
        }
    };
    document.models = std::mem::take(&mut document.models)
        .into_iter()
        .map(|(name, mut model)| {
            model.name = full(&name);
            model
                .components
                .values_mut()
                .filter_map(|c| c.implementation.as_mut())
                .for_each(used);
            (model.name.clone(), model)
        })
        .collect();
    document.programs = std::mem::take(&mut document.programs)
        .into_iter()
        .map(|(name, mut program)| {
            program.name = full(&name);
            (program.name.clone(), program)
        })
        .collect();
    for custom in document.custom_implementations.values_mut() {
        custom.implementation.as_mut().into_iter().for_each(used);
    }
}

/// Copies an implementation out of a module, with all parts; false if the module has no such
/// implementation.
fn take(
    document: &mut Document,
    module: &Document,
    import: &Import,
    name: &Name,
    problems: &mut Problems,
) -> bool {
    if !module.models.contains_key(name) && !module.programs.contains_key(name) {
        report_not_in_module(module, import, problems);
        return false;
    }
    let mut done: HashSet<&Name> = HashSet::new();
    let mut next: VecDeque<&Name> = VecDeque::from([name]);
    while let Some(name) = next.pop_front() {
        if !done.insert(name) {
            continue;
        }
        if let Some(program) = module.programs.get(name) {
            document.programs.insert(name.clone(), program.clone());
        } else if let Some(model) = module.models.get(name) {
            next.extend(take_model(document, module, name, model));
        }
    }
    true
}

/// Takes a model with its custom implementations. Returns the names of everything that the model
/// needs.
fn take_model<'m>(
    document: &mut Document,
    module: &'m Document,
    name: &Name,
    model: &'m Model,
) -> Vec<&'m Name> {
    document.models.insert(name.clone(), model.clone());
    let components = model.components.values();
    let implementations = components.filter_map(|component| component.implementation.as_ref());
    let mut needed: Vec<&Name> = implementations.collect();
    let inside = format!("{name}.");
    for (path, custom) in &module.custom_implementations {
        if path.starts_with(&inside) {
            let taken = &mut document.custom_implementations;
            taken.insert(path.clone(), custom.clone());
            needed.extend(custom.implementation.as_ref());
        }
    }
    needed
}

fn report_not_in_module(module: &Document, import: &Import, problems: &mut Problems) {
    let names = || {
        let names = module.models.keys().chain(module.programs.keys());
        names.map(|name| name.rsplit('.').next().unwrap_or_default())
    };
    let what = format!("module \"{}\" has no \"{}\"", import.module, import.name);
    let why = format!("it has {}", listing(names()));
    let hint = did_you_mean(&import.name, names());
    problems.error_hint(import.at, Code::Import, what, why, hint);
}

/// Makes the paths of custom implementations begin with full names. A customised model is copied
/// first, so that other uses of the imported model stay unchanged.
fn customise(
    document: &mut Document,
    locals: &HashMap<Name, Name>,
    module: Option<&Name>,
    problems: &mut Problems,
) {
    let of_imports: Vec<Name> = document.models.keys().cloned().collect();
    let own = |name: &str| match module {
        Some(module) => Name::from(format!("{module}.{name}")),
        None => Name::from(name),
    };
    let mut renamed = indexmap::IndexMap::new();
    for (path, custom) in std::mem::take(&mut document.custom_implementations) {
        let (first, rest) = path.split_once('.').unwrap_or((&path, ""));
        let Some(full) = locals.get(first) else {
            // The path came with an imported model, or leads nowhere, which the check of paths
            // reports.
            renamed.insert(path, custom);
            continue;
        };
        let name = own(first);
        let copy = document
            .models
            .get(full)
            .filter(|_| *full != name && !document.models.contains_key(&name));
        if let Some(mut model) = copy.cloned() {
            model.name = name.clone();
            document.models.insert(name.clone(), model);
        }
        if let Some(implementation) = &custom.implementation
            && !exists(document, implementation)
        {
            unknown(locals, &path, implementation, custom.at, problems);
            continue;
        }
        renamed.insert(format!("{name}.{rest}").into(), custom);
    }
    document.custom_implementations = renamed;
    drop_originals(document, &of_imports, locals, own);
}

fn exists(document: &Document, name: &Name) -> bool {
    document.models.contains_key(name)
        || document.programs.contains_key(name)
        || built_in::names().contains(&name.as_str())
}

fn unknown(
    locals: &HashMap<Name, Name>,
    path: &Name,
    name: &Name,
    at: TextPosition,
    problems: &mut Problems,
) {
    let mut names: Vec<&str> = locals.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    let why = format!("it is to implement \"{path}\"; is an import missing?");
    let hint = did_you_mean(name, names.iter().copied())
        .or_else(|| Some(format!("there are {}", listing(names))));
    problems.error_hint(
        at,
        Code::UnknownImplementation,
        format!("there is no program or model \"{name}\""),
        why,
        hint,
    );
}

/// Removes imported models that were copied and have no other use: they would look like models to
/// run.
fn drop_originals(
    document: &mut Document,
    models: &[Name],
    locals: &HashMap<Name, Name>,
    own: impl Fn(&str) -> Name,
) {
    let copied = locals
        .iter()
        .filter(|(local, full)| **full != own(local) && document.models.contains_key(&own(local)));
    let copied: HashSet<Name> = copied.map(|(_, full)| full.clone()).collect();
    let used: HashSet<Name> = document
        .models
        .values()
        .flat_map(|m| m.components.values())
        .filter_map(|c| c.implementation.clone())
        .collect();
    for name in models
        .iter()
        .filter(|name| copied.contains(*name) && !used.contains(*name))
    {
        document.models.shift_remove(name);
    }
}
