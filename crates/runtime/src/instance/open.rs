//! How an instance joins the run: it asks the manager, and is built of the answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock, RwLock};
use std::time::Instant;

use titin_model::{InstanceName, MuscleSettings, Operator, Pattern, Settings};
use titin_transport::{Doorbell, Latch, Wake, Window};
use titin_wire::control::{Registration, ToManager, Welcome};

use super::{Inner, Instance};
use crate::filter::Chain;
use crate::light::Light;
use crate::neighbours::{Neighbours, Place};
use crate::port::{End, Inlet, Port};
use crate::process::{Process, forked, host};
use crate::profile::Trace;
use crate::ranks::{Met, Ranks, is_between_ranks, meet};
use crate::sel::Loop;
use crate::setting::Named;
use crate::wait::SLICE;
use crate::{Error, Kind, Options, Result};

/// An instance that has asked to join the run.
///
/// Many may ask before the first of them is waited for. Dropping one that has not joined fails the run.
pub struct Opening {
    name: String,
    options: Options,
    process: Arc<Process>,
    bell: Arc<Doorbell>,
    /// Of a parallel program, its rank and how many there are.
    place: Option<(u32, u32)>,
    began: Instant,
    over: bool,
}

impl Instance {
    /// Joins the run as the instance that the options or the environment name, and waits until the manager has
    /// answered.
    ///
    /// # Errors
    /// [`Kind::Connection`] if the run cannot be joined, [`Kind::Filter`] if a filter of the user's cannot be found.
    pub fn open(options: Options) -> Result<Self> {
        Opening::begin(options)?.wait()
    }
}

impl Opening {
    /// Asks to join the run, and does not wait.
    ///
    /// # Errors
    /// [`Kind::Connection`] if the run cannot be joined, [`Kind::Usage`] if this process has the instance already.
    pub fn begin(mut options: Options) -> Result<Self> {
        let (began, bell) = (Instant::now(), Arc::new(Doorbell::default()));
        let met = match options.communicator.take() {
            Some(_) if options.ready.is_some() => {
                let text = "a light instance cannot be parallel: its calls do not wait, and those of ranks wait for each other";
                return Err(Error::new(Kind::Usage, text));
            }
            // One rank alone is a serial program.
            Some(communicator) if communicator.ranks() > 1 => {
                Some(meet(&options, &*communicator, &bell)?)
            }
            _ => None,
        };
        let Met {
            instance: name,
            process,
            rank,
            roll,
        } = match met {
            Some(met) => met,
            None => {
                let (instance, run) = (options.find_instance()?, options.find_run()?);
                let process = Process::join(&run)?;
                process.expect_answer(&instance, bell.clone())?;
                Met {
                    instance,
                    process,
                    rank: 0,
                    roll: Vec::new(),
                }
            }
        };
        let place = (!roll.is_empty()).then_some((rank, roll.len() as u32));
        if let Some(listing) = options.ready.clone() {
            bell.listen(move || listing.push());
        }
        let registration = Registration {
            instance: name.clone(),
            endpoint: titin_wire::EndpointId(0),
            addresses: Vec::new(),
            pid: std::process::id(),
            host: host(),
            ports: options.ports.clone(),
            language: options.language.clone(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            ranks: roll.into_iter().skip(1).collect(),
        };
        // For the other ranks rank 0 asks; they hear the answer by way of the rank above.
        if rank == 0 {
            process.ask(registration);
        }
        Ok(Opening {
            name,
            options,
            process,
            bell,
            place,
            began,
            over: false,
        })
    }

    /// The instance, once the manager has answered; until then `None`. A light one is told by its list when to ask again.
    ///
    /// # Errors
    /// As [`Instance::open`].
    pub fn poll(&mut self) -> Result<Option<Instance>> {
        loop {
            let rings = self.bell.rings();
            let answer = self
                .process
                .answer(&self.name)
                .inspect_err(|_| self.give_up())?;
            if let Some(welcome) = answer {
                return self.enter(welcome).map(Some);
            }
            if self.options.ready.is_none() || self.bell.arm(rings, &[]) {
                return Ok(None);
            }
        }
    }

    /// Waits for the instance.
    ///
    /// # Errors
    /// As [`Instance::open`].
    pub fn wait(mut self) -> Result<Instance> {
        loop {
            let rings = self.bell.rings();
            if let Some(instance) = self.poll()? {
                return Ok(instance);
            }
            let slice = self
                .options
                .interrupt
                .as_ref()
                .map_or(self.process.patience, |_| SLICE);
            let wake = self.bell.wait(rings, Some(slice), &[]);
            let interrupted = self.options.interrupt.as_ref();
            if wake != Wake::Rung && interrupted.is_some_and(|interrupted| interrupted()) {
                let text = "a signal has interrupted it while it joined the run";
                self.fail(text);
                return Err(Error::new(Kind::Interrupted, text));
            }
        }
    }

    fn enter(&mut self, mut welcome: Welcome) -> Result<Instance> {
        self.over = true;
        let ranks = self
            .place
            .map(|(rank, ranks)| Ranks::of(&mut welcome, rank, ranks))
            .transpose();
        let built = ranks.and_then(|ranks| {
            Inner::build(
                &self.name,
                &self.options,
                &self.process,
                &self.bell,
                &welcome,
                ranks,
                self.began,
            )
        });
        let inner = Arc::new(built.inspect_err(|error| {
            self.tell(&error.text);
            self.process.enters_no_more(&self.name);
        })?);
        welcome
            .between_ranks
            .iter()
            .for_each(|first| self.process.number_tree(*first));
        self.process.admit(&inner, &welcome);
        if let Some(interrupted) = self.options.interrupt.take() {
            let _ = inner.interrupt.set(interrupted);
        }
        Ok(Instance { inner })
    }

    fn give_up(&mut self) {
        self.over = true;
        self.process.await_below();
        self.process.ask_no_more(&self.name);
    }

    /// Fails the run, with this instance as the culprit. The manager may have let it in meanwhile, or do so yet.
    pub fn fail(mut self, text: &str) {
        self.give_up();
        self.tell(text);
    }

    fn tell(&self, text: &str) {
        let (instance, text) = (self.name.clone(), text.to_owned());
        self.process.tell(&ToManager::Failed {
            instance,
            text,
            echo: false,
            after: Vec::new(),
        });
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !self.over && !forked() {
            self.give_up();
            self.tell("the program let go of the instance before it had joined the run");
        }
    }
}

impl Inner {
    fn build(
        name: &str,
        options: &Options,
        process: &Arc<Process>,
        bell: &Arc<Doorbell>,
        welcome: &Welcome,
        ranks: Option<Ranks>,
        began: Instant,
    ) -> Result<Self> {
        let internal =
            |what: String| Error::new(Kind::Internal, format!("the manager's welcome: {what}"));
        let path: InstanceName = name
            .parse()
            .map_err(|error| internal(format!("instance name: {error}")))?;
        let mut ports = Vec::with_capacity(welcome.ports.len());
        let mut ends = Vec::new();
        let mut places = HashMap::new();
        let mut timelines: Vec<String> = Vec::new();
        let mut far = Vec::new();
        for declared in &welcome.ports {
            let operator = Operator::from_key(&declared.operator)
                .ok_or_else(|| internal(format!("unknown operator {}", declared.operator)))?;
            places.insert(declared.name.as_str(), ports.len());
            ports.push(Port::new(
                process.name(&declared.name),
                operator,
                declared.vector,
            ));
        }
        let mut settings = Settings::default();
        welcome
            .settings
            .iter()
            .for_each(|(path, value)| settings.set(path.as_str(), value.clone()));
        let habits = MuscleSettings::of(&settings, &path);
        let trace = Trace::new(welcome.trace, habits.trace);
        let registered = trace.live("REGISTER", trace.at(began));
        let mut patterns = HashMap::new();
        for wire in &welcome.wires {
            wire.pattern.iter().for_each(|pattern| {
                patterns.insert(wire.conduit, Arc::new(Pattern::clone(pattern)));
            });
            let index = *places
                .get(wire.port.as_str())
                .ok_or_else(|| internal(format!("no port {}", wire.port)))?;
            let port: &mut Port = &mut ports[index];
            let place = port.place(wire);
            port.timeline = match &wire.timeline {
                None => 0,
                Some(timeline) => {
                    1 + timelines
                        .iter()
                        .position(|known| known == timeline)
                        .unwrap_or_else(|| {
                            timelines.push(timeline.clone());
                            timelines.len() - 1
                        })
                }
            };
            // Rank 0 of a parallel program has its conduits.
            if ranks.is_some_and(|ranks| ranks.rank > 0) && !is_between_ranks(&wire.port) {
                far.push((index, wire.conduit, process.name(&wire.peer)));
                continue;
            }
            let chain = Chain::new(
                &wire.filters,
                wire.sends,
                &welcome.filters,
                &options.functions,
            )?;
            if port.resizable && chain.chooses() {
                let text = format!(
                    "port '{}' of {name}: its sender counts the slots at run time, so the filters `last`, `repeat` and \
                     `pad` cannot choose among its messages",
                    wire.port
                );
                return Err(Error::new(Kind::Usage, text));
            }
            let uses = chain.lasts > 0;
            let mut end = End::new(wire, |name| process.name(name), chain);
            let name = end.peer.clone();
            end.meter.off = trace.off;
            let limits = (wire.buffer_messages, wire.buffer_bytes);
            if wire.sends {
                // What gives way to newer messages may never arrive, so bytes say nothing.
                let (messages, bytes) = if uses { (limits.0, u64::MAX) } else { limits };
                let window = Arc::new(Window::new(bell.clone(), messages, bytes));
                process.exchange.open_window(wire.conduit, window.clone());
                ends.push((
                    name,
                    Place::sending(index, place, port.outlets[place].len()),
                ));
                port.push_outlet(place, end, window);
            } else {
                let inbox = process.exchange.inbox(wire.conduit);
                ends.push((name, Place::receiving(index, place)));
                port.put_inlet(place, Inlet { end, inbox, limits });
            }
        }
        // What leads nowhere does not count the steps of what does.
        let apart = timelines.len() + 1;
        ports
            .iter_mut()
            .filter(|port| !port.connected())
            .for_each(|port| port.timeline = apart);
        trace.live("CONNECT", registered);
        Ok(Inner {
            name: name.to_owned(),
            path,
            ranks,
            far,
            patterns,
            fields: RwLock::default(),
            lines: RwLock::default(),
            habits,
            process: process.clone(),
            bell: bell.clone(),
            ports,
            neighbours: Neighbours::of(ends),
            cycle: Latch::new(Loop::new(true)),
            counts_steps: welcome.counts_steps,
            beginning: Latch::default(),
            settings,
            overlay: Mutex::default(),
            named: Named::new(welcome.components.clone()),
            overlaid: AtomicBool::new(false),
            numbered: Mutex::default(),
            scale: welcome.scale.clone(),
            end: welcome.end,
            time_unit: welcome.time_unit.clone().unwrap_or_else(|| "s".to_owned()),
            trace,
            simulated: AtomicU64::new(f64::NAN.to_bits()),
            progress: Mutex::default(),
            interrupt: OnceLock::new(),
            waits: AtomicU64::new(0),
            waiting: Mutex::default(),
            polled: Latch::default(),
            caller: AtomicUsize::new(0),
            threaded: AtomicBool::new(false),
            unwatched: AtomicBool::new(false),
            sends: AtomicU64::new(0),
            timed: AtomicI64::new(0),
            carriers: Mutex::default(),
            turn: AtomicUsize::new(0),
            choice: Mutex::default(),
            lists: AtomicBool::new(false),
            steps_below: Mutex::default(),
            leading: Mutex::default(),
            closing: AtomicBool::new(false),
            put_back: AtomicBool::new(false),
            chosen_by: Mutex::default(),
            sending: AtomicU64::new(0),
            over: AtomicBool::new(false),
            first_error: Mutex::default(),
            ended: Mutex::default(),
            ended_last: AtomicBool::new(false),
            closed_in_use: AtomicBool::new(false),
            light: options.ready.is_some().then(Light::default),
            ending: Mutex::default(),
        })
    }
}
