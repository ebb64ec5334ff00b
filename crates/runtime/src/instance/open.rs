//! How an instance joins the run: this process asks the manager, and builds the instance from the
//! answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use titin_model::Pattern;
use titin_os::host;
use titin_transport::{Doorbell, Wake};
use titin_wire::ConduitId;
use titin_wire::control::{Registration, ToManager, Welcome};
use titin_wire::ranks::RankProcess;

use super::Instance;
use super::layers::Layers;
use crate::field::{InstanceFields, Rendezvous};
use crate::process::{Process, ProcessMember, forked};
use crate::ranks::{Bootstrapped, RankGroup, RankPlace, RankTree, bootstrap};
use crate::serial::{Opened, SLICE, Serial};
use crate::{Error, Kind, Options, Result};

/// An instance that has asked to join the run.
///
/// A process may ask for many instances before the process waits for the first. Dropping an opening
/// that has not joined fails the run.
pub struct Opening {
    name: String,
    options: Options,
    process: Arc<Process>,
    bell: Arc<Doorbell>,
    fields: Arc<Rendezvous>,
    /// In a parallel program, the rank of this process.
    place: Option<RankPlace>,
    began: Instant,
    over: bool,
}

impl Instance {
    /// Joins the run as the instance that the options or the environment name, and waits until the
    /// manager has answered.
    ///
    /// # Errors
    /// [`Kind::Connection`] if the run cannot be joined, [`Kind::Filter`] if a filter of the user
    /// cannot be found.
    pub fn open(options: Options) -> Result<Self> {
        Opening::begin(options)?.wait()
    }
}

impl Opening {
    /// Asks to join the run, and does not wait.
    ///
    /// # Errors
    /// [`Kind::Connection`] if the run cannot be joined, [`Kind::Usage`] if this process has the
    /// instance already.
    pub fn begin(mut options: Options) -> Result<Self> {
        let (began, bell) = (Instant::now(), Arc::new(Doorbell::default()));
        let fields = Arc::new(Rendezvous::default());
        let Bootstrapped {
            instance: name,
            process,
            rank,
            roll,
        } = match options.communicator.take() {
            Some(_) if options.ready.is_some() => {
                let text = "a light instance cannot be parallel: its calls do not wait, and those of ranks wait for each other";
                return Err(Error::new(Kind::Usage, text));
            }
            // A single rank is a serial program.
            Some(communicator) if communicator.ranks() > 1 => {
                bootstrap(&options, &*communicator, &bell, fields.clone())?
            }
            _ => bootstrap_alone(&options, &bell, fields.clone())?,
        };
        let count = roll.len() as u32;
        let place = (count > 0).then_some(RankPlace { rank, count });
        if let Some(entry) = options.ready.clone() {
            bell.listen(move || entry.push());
        }
        // Rank 0 asks for all ranks. The other ranks hear the answer by way of the rank above.
        if rank == 0 {
            process.ask(registration(&name, &options, roll));
        }
        Ok(Opening {
            name,
            options,
            process,
            bell,
            fields,
            place,
            began,
            over: false,
        })
    }

    /// The instance, once the manager has answered; until then `None`. The list of a non-blocking
    /// instance says when to ask again.
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

    fn enter(&mut self, welcome: Welcome) -> Result<Instance> {
        self.over = true;
        let instance = self.build(&welcome).inspect_err(|error| {
            self.tell(&error.text);
            self.process.drop_admitted(&self.name);
        })?;
        welcome
            .between_ranks
            .iter()
            .for_each(|first| self.process.number_tree(*first));
        let member: Arc<dyn ProcessMember> = instance.layers.clone();
        self.process.admit(&member, &welcome);
        if let Some(interrupted) = self.options.interrupt.take() {
            let _ = instance.serial.core.interrupt.set(interrupted);
        }
        Ok(instance)
    }

    /// Puts the layers of the instance together.
    fn build(&self, welcome: &Welcome) -> Result<Instance> {
        let (process, bell) = (&self.process, &self.bell);
        let tree = self
            .place
            .map(|place| RankTree::open(welcome, place, process, bell))
            .transpose()?;
        let opened = Opened {
            name: &self.name,
            options: &self.options,
            process,
            bell,
            welcome,
            rank: self.place.map(|place| place.rank),
            has_ranks_below: self.place.is_some_and(RankPlace::has_children),
            began: self.began,
        };
        let (serial, remote) = opened.build()?;
        let serial = Arc::new(serial);
        let group = self.place.zip(tree).map(|(place, tree)| {
            let receiving = self.options.receiving;
            Arc::new(RankGroup::new(
                serial.clone(),
                place,
                tree,
                remote,
                receiving,
            ))
        });
        let fields = Arc::new(InstanceFields::new(
            serial.clone(),
            group.clone(),
            patterns(welcome),
            self.fields.clone(),
        ));
        let sender: Weak<InstanceFields> = Arc::downgrade(&fields);
        let instance = stack(serial, group, fields);
        self.fields.opened(sender);
        Ok(instance)
    }

    fn give_up(&mut self) {
        self.over = true;
        self.process.await_below();
        self.process.cancel_request(&self.name);
    }

    /// Fails the run, with this instance as the culprit. The manager may have let the instance in
    /// meanwhile, or may do so later.
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

/// The process of a serial program, which has joined the run.
fn bootstrap_alone(
    options: &Options,
    bell: &Arc<Doorbell>,
    fields: Arc<Rendezvous>,
) -> Result<Bootstrapped> {
    let (instance, run) = (options.find_instance()?, options.find_run()?);
    let process = Process::join(&run)?;
    process.expect_answer(&instance, bell.clone(), fields)?;
    Ok(Bootstrapped {
        instance,
        process,
        rank: 0,
        roll: Vec::new(),
    })
}

/// The registration of an instance. The process adds its own id and addresses.
fn registration(instance: &str, options: &Options, roll: Vec<RankProcess>) -> Registration {
    Registration {
        instance: instance.to_owned(),
        endpoint: titin_wire::EndpointId(0),
        addresses: Vec::new(),
        pid: std::process::id(),
        host: host::name(),
        ports: options.ports.clone(),
        language: options.language.clone(),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        ranks: roll.into_iter().skip(1).collect(),
    }
}

/// The instance of the given layers. The lower layers learn of the upper layers.
fn stack(
    serial: Arc<Serial>,
    group: Option<Arc<RankGroup>>,
    fields: Arc<InstanceFields>,
) -> Instance {
    let layers = Arc::new(Layers {
        serial: serial.clone(),
        group: group.clone(),
        fields: fields.clone(),
        closing: Mutex::default(),
    });
    let below: Weak<Layers> = Arc::downgrade(&layers);
    serial.set_upper_layers(below.clone());
    fields.opened(below);
    Instance {
        serial,
        group,
        fields,
        layers,
        last_choice: Mutex::default(),
    }
}

/// The patterns of fields, by their conduits.
fn patterns(welcome: &Welcome) -> HashMap<ConduitId, Arc<Pattern>> {
    let wires = welcome.wires.iter();
    wires
        .filter_map(|wire| {
            let pattern = wire.pattern.as_ref()?;
            Some((wire.conduit, Arc::new(Pattern::clone(pattern))))
        })
        .collect()
}
