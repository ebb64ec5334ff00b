//! Builds a serial instance from the manager's welcome.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use titin_model::{InstanceName, MuscleSettings, Operator, Settings};
use titin_transport::{Doorbell, SpinLock};
use titin_wire::ConduitId;
use titin_wire::control::{ConduitEnd, Welcome};

use super::{
    Core, Execution, Overlays, PortTable, ProfileState, ReceiveAnyState, Serial, WaitReporter,
};
use crate::execution_loop::ExecutionLoop;
use crate::filter::Chain;
use crate::neighbours::{EndIndex, NeighbourIndex};
use crate::non_blocking::PendingCalls;
use crate::port::{ConduitUse, Port, PortEnd, PortId};
use crate::process::Process;
use crate::profile::Trace;
use crate::setting::OverlayNames;
use crate::{Error, Kind, Options, Result};

/// The facts needed to build a serial instance.
pub(crate) struct Opened<'a> {
    pub(crate) name: &'a str,
    pub(crate) options: &'a Options,
    pub(crate) process: &'a Arc<Process>,
    pub(crate) bell: &'a Arc<Doorbell>,
    pub(crate) welcome: &'a Welcome,
    /// The rank of this process; none of a serial program.
    pub(crate) rank: Option<u32>,
    /// Whether there are ranks below. The upper layers look after such ranks while a call waits.
    pub(crate) has_ranks_below: bool,
    /// When the program asked to open the instance.
    pub(crate) began: Instant,
}

/// A conduit of an ordinary port that rank 0 has.
pub(crate) struct RemoteConduit {
    pub(crate) port: PortId,
    pub(crate) conduit: ConduitId,
    /// The instance at the other end.
    pub(crate) peer: Arc<str>,
}

impl Opened<'_> {
    /// Builds the instance. Also returns the conduits that rank 0 has for this rank.
    pub(crate) fn build(&self) -> Result<(Serial, Vec<RemoteConduit>)> {
        let welcome = self.welcome;
        let path: InstanceName = self
            .name
            .parse()
            .map_err(|error| broken_welcome(&format!("instance name: {error}")))?;
        let mut settings = Settings::default();
        for (path, value) in &welcome.settings {
            settings.set(path.as_str(), value.clone());
        }
        let habits = MuscleSettings::of(&settings, &path);
        let checks = habits.checks.unwrap_or(self.options.checks);
        let trace = Trace::new(welcome.trace, habits.trace, self.process.clock());
        let registered = trace.live("REGISTER", trace.at(self.began));
        let mut ports = PortsBuilder::declared(self, trace.off)?;
        welcome.wires.iter().try_for_each(|wire| ports.add(wire))?;
        let (table, remote) = ports.finish();
        trace.live("CONNECT", registered);
        let is_plain = self.rank.is_none()
            && self.options.ready.is_none()
            && !welcome.counts_steps
            && !trace.on;
        let serial = Serial {
            core: self.core(path, habits),
            table,
            execution: Execution {
                state: SpinLock::new(ExecutionLoop::new(checks)),
                counts_steps: welcome.counts_steps,
                beginning: SpinLock::default(),
            },
            overlays: Overlays {
                settings,
                overlay: Mutex::default(),
                overlaid: AtomicBool::new(false),
                using: self.options.overlays,
                numbered: Mutex::default(),
                named: OverlayNames::new(welcome.components.clone()),
            },
            reporter: self.reporter(),
            profile: ProfileState {
                trace,
                simulated: AtomicU64::new(f64::NAN.to_bits()),
                end: welcome.end,
                progress: Mutex::default(),
                sends: AtomicU64::new(0),
                timed: AtomicI64::new(0),
                sending: AtomicU64::new(0),
            },
            any: ReceiveAnyState::default(),
            told_failures: Mutex::default(),
            above: OnceLock::new(),
            is_plain,
        };
        Ok((serial, remote))
    }

    fn core(&self, path: InstanceName, habits: MuscleSettings) -> Core {
        let unit = self.welcome.time_unit.clone();
        Core {
            name: self.name.to_owned(),
            path,
            rank: self.rank,
            habits,
            process: self.process.clone(),
            bell: self.bell.clone(),
            scale: self.welcome.scale.clone(),
            time_unit: unit.unwrap_or_else(|| "s".to_owned()),
            interrupt: OnceLock::new(),
            caller: AtomicUsize::new(0),
            threaded: AtomicBool::new(false),
            over: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            first_error: Mutex::default(),
            ended: Mutex::default(),
            ended_last: AtomicBool::new(false),
            closed_in_use: AtomicBool::new(false),
        }
    }

    fn reporter(&self) -> WaitReporter {
        WaitReporter {
            waits: AtomicU64::new(0),
            waiting: Mutex::default(),
            polled: SpinLock::default(),
            unwatched: AtomicBool::new(false),
            watches_ranks: self.has_ranks_below,
            pending: self.options.ready.is_some().then(PendingCalls::default),
        }
    }
}

/// Builds the ports of an instance, as the conduit ends are opened one by one.
struct PortsBuilder<'a> {
    opened: &'a Opened<'a>,
    /// Whether nothing is counted.
    unmetered: bool,
    ports: Vec<Port>,
    /// The numbers of ports, by name.
    numbers: HashMap<&'a str, usize>,
    timelines: Vec<&'a str>,
    ends: Vec<(Arc<str>, EndIndex)>,
    remote: Vec<RemoteConduit>,
}

impl<'a> PortsBuilder<'a> {
    /// The ports as the manager declares them, without conduits.
    fn declared(opened: &'a Opened<'a>, unmetered: bool) -> Result<Self> {
        let declared = &opened.welcome.ports;
        let (mut ports, mut numbers) = (Vec::with_capacity(declared.len()), HashMap::new());
        for port in declared {
            let operator = Operator::from_key(&port.operator)
                .ok_or_else(|| broken_welcome(&format!("unknown operator {}", port.operator)))?;
            numbers.insert(port.name.as_str(), ports.len());
            let name = opened.process.name(&port.name);
            ports.push(Port::new(name, operator, port.vector));
        }
        Ok(PortsBuilder {
            opened,
            unmetered,
            ports,
            numbers,
            timelines: Vec::new(),
            ends: Vec::new(),
            remote: Vec::new(),
        })
    }

    /// Opens the end of a conduit at the port of the end. In a parallel program rank 0 has all
    /// conduits.
    fn add(&mut self, wire: &'a ConduitEnd) -> Result<()> {
        let Opened {
            name,
            process,
            bell,
            ..
        } = *self.opened;
        let number = *self
            .numbers
            .get(wire.port.as_str())
            .ok_or_else(|| broken_welcome(&format!("no port {}", wire.port)))?;
        let timeline = self.timeline(wire);
        let port = &mut self.ports[number];
        let place = port.place(wire);
        port.timeline = timeline;
        if self.opened.rank.is_some_and(|rank| rank > 0) {
            self.remote.push(RemoteConduit {
                port: PortId(number),
                conduit: wire.conduit,
                peer: process.name(&wire.peer),
            });
            return Ok(());
        }
        let (filters, functions) = (&self.opened.welcome.filters, &self.opened.options.functions);
        let chain = Chain::new(&wire.filters, wire.sends, filters, functions)?;
        if port.resizable && chain.chooses() {
            let text = format!(
                "port '{}' of {name}: its sender counts the slots at run time, so the filters `last`, `repeat` and \
                 `pad` cannot choose among its messages",
                wire.port
            );
            return Err(Error::new(Kind::Usage, text));
        }
        let mut limits = (wire.buffer_messages, wire.buffer_bytes);
        if wire.sends && chain.lasts > 0 {
            // A message replaced by a newer message may never arrive, so a limit of bytes has no
            // meaning here.
            limits.1 = u64::MAX;
        }
        let mut end = PortEnd::new(wire, ConduitUse::Ports, |name| process.name(name), chain);
        end.meter.off = self.unmetered;
        let index = match wire.sends {
            true => EndIndex::sending(number, place, port.outlets[place].len()),
            false => EndIndex::receiving(number, place),
        };
        self.ends.push((end.peer.clone(), index));
        port.open_end(place, end, limits, (bell, &process.exchange));
        Ok(())
    }

    /// The number of a conduit's timeline among the timelines of the instance, from 1; 0 for none.
    fn timeline(&mut self, wire: &'a ConduitEnd) -> usize {
        let Some(timeline) = wire.timeline.as_deref() else {
            return 0;
        };
        let known = self.timelines.iter().position(|known| *known == timeline);
        1 + known.unwrap_or_else(|| {
            self.timelines.push(timeline);
            self.timelines.len() - 1
        })
    }

    fn finish(mut self) -> (PortTable, Vec<RemoteConduit>) {
        // A port without a conduit does not count the steps of a connected port.
        let apart = self.timelines.len() + 1;
        for port in self.ports.iter_mut().filter(|port| !port.connected()) {
            port.timeline = apart;
        }
        let table = PortTable {
            ports: self.ports,
            neighbours: NeighbourIndex::of(self.ends),
            carriers: Mutex::default(),
        };
        (table, self.remote)
    }
}

fn broken_welcome(what: &str) -> Error {
    Error::new(Kind::Internal, format!("the manager's welcome: {what}"))
}
