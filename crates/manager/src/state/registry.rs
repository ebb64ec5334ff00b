//! Who may join, and what a newcomer is told.
//!
//! An instance may join at any time, once. Its ports must be those that the description connects: a port misspelt
//! in the program is found here, before anybody waits for it.

use std::collections::{BTreeSet, HashMap, HashSet};

use titin_model::{Name, Operator, SETTINGS_IN};
use titin_transport::LinkId;
use titin_wire::control::{ConduitEnd, Peer, PortDeclaration, Registration, ToProgram, Welcome};
use titin_wire::ranks;

use super::{Fault, Joined, Manager, Process, Seat};
use crate::event::{Action, Level};
use crate::plan::{ConduitId, End, InstanceId, Planned, Port};

/// Ranks that an instance has at most: the conduits between them are numbered.
const MOST_RANKS: u32 = 1 << 20;

/// What to do with ranks that come one by one.
const ONE_PROGRAM: &str = "If they are ranks of one parallel program, open the instance with their communicator, and start them \
                           with the launcher of their MPI, which would give it more than one rank";

impl Manager {
    pub(super) fn register(&mut self, link: LinkId, registration: Registration) {
        let (name, pid) = (registration.instance.clone(), registration.pid);
        match self.admit(&registration) {
            Ok(id) => self.join(link, id, registration),
            Err(Refusal {
                text,
                instance,
                fatal,
            }) => {
                let over = self.course.failure().is_some();
                // A refusal that ends the run is its cause, and is told as that.
                if over || !fatal {
                    self.log(
                        Level::Warning,
                        None,
                        format!("{name} is not let in: {text}"),
                    );
                }
                self.tell(
                    link,
                    ToProgram::Refused {
                        instance: name,
                        text: text.clone(),
                    },
                );
                let Some(id) = instance else { return };
                let told = format!("process {pid} was not let in: {text}");
                self.remember(id, &told);
                let member = &mut self.members[id];
                if over {
                    member.too_late = true;
                } else if fatal {
                    self.fault(id, Fault::Refused(text));
                } else {
                    // Where `mpirun` has started both, this process may well end the one that takes part.
                    member.refused.get_or_insert(told);
                }
            }
        }
    }

    /// Whether this registration is in order.
    fn admit(&self, registration: &Registration) -> Result<InstanceId, Refusal> {
        let name = &registration.instance;
        let Some(&id) = self.names.get(name) else {
            return Err(Refusal {
                text: self.no_such_instance(name),
                instance: None,
                fatal: false,
            });
        };
        let member = &self.members[id];
        let refuse = |text: String| {
            Err(Refusal {
                text,
                instance: Some(id),
                fatal: false,
            })
        };
        // A user who starts the program by hand can correct it and start it again.
        let ours = member.process != Process::Foreign;
        if let Some(failure) = self.course.failure() {
            return refuse(format!(
                "the run has failed already ({})",
                self.told(&failure.cause).0
            ));
        }
        match &member.seat {
            Seat::Taken(joined) => {
                let text = format!(
                    "process {} on {} takes part as {name} already, so process {} on {} cannot. {ONE_PROGRAM}; if not, give \
                     each its own TITIN_INSTANCE",
                    joined.pid, joined.host, registration.pid, registration.host
                );
                return Err(Refusal {
                    text,
                    instance: Some(id),
                    fatal: ours,
                });
            }
            Seat::Done => {
                let text = format!(
                    "{name} has taken part and closed already. {ONE_PROGRAM}; if not, open the instance once, and use reuse() \
                     to be called several times"
                );
                return Err(Refusal {
                    text,
                    instance: Some(id),
                    fatal: ours,
                });
            }
            Seat::Lost(why) => {
                return refuse(format!("{name} has taken part already and was lost: {why}"));
            }
            Seat::Empty => {}
        }
        let ranks = u32::try_from(registration.ranks.len())
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        if ranks > MOST_RANKS || u32::MAX - self.next_conduit < ranks::conduit_count(ranks) {
            return refuse(format!(
                "{ranks} ranks, at most {MOST_RANKS} in an instance, and 2000 times that in a run"
            ));
        }
        let planned = &self.plan.instances[id];
        let ends = self.ends[id].iter().map(|&end| self.near(end));
        let fits = match &registration.ports {
            Some(ports) => {
                check_ports(planned, ends, ports).and_then(|()| self.check_slots(id, ports))
            }
            None => self.check_slots(id, &self.described_ports(id)),
        };
        fits.map(|()| id).map_err(|text| Refusal {
            text,
            instance: Some(id),
            fatal: ours,
        })
    }

    fn no_such_instance(&self, name: &str) -> String {
        let names = || {
            self.plan
                .instances
                .iter()
                .map(|instance| instance.name.as_str())
        };
        let hint = match titin_model::nearest(name, names()) {
            Some(near) => format!("; did you mean {near}?"),
            None => format!("; it has {}", titin_model::listing(names())),
        };
        let model = &self.plan.model;
        match name {
            "" => format!(
                "no instance was named: set TITIN_INSTANCE, or give a name when opening{hint}"
            ),
            _ => format!(
                "the model {model} has no instance {name}{hint}. TITIN_INSTANCE says who a program is"
            ),
        }
    }

    /// A conduit between single instances may carry slots, but then both ends must say so.
    fn check_slots(&self, id: InstanceId, ports: &[PortDeclaration]) -> Result<(), String> {
        let vectors = vectors(ports);
        for &(conduit, sends) in &self.ends[id] {
            let (here, there) = (self.near((conduit, sends)), self.near((conduit, !sends)));
            let Some(peer) = self.members[there.instance].joined() else {
                continue;
            };
            if here.slot.is_some() || there.slot.is_some() || here.port == SETTINGS_IN {
                continue;
            }
            let (mine, theirs) = (
                vectors.contains(&*here.port),
                peer.vectors.contains(&*there.port),
            );
            if mine != theirs {
                let written = |id, port: &str, vector| {
                    format!("{}.{port}{}", self.name(id), if vector { "[]" } else { "" })
                };
                return Err(format!(
                    "{} and {} are joined, but one is declared as a vector port and the other is not: declare \
                     both with [], or neither",
                    written(id, &here.port, mine),
                    written(there.instance, &there.port, theirs)
                ));
            }
        }
        Ok(())
    }

    fn join(&mut self, link: LinkId, id: InstanceId, registration: Registration) {
        let mut welcome = self.welcome(id, registration.ports.as_deref());
        self.warn_of_unknown_ports(id, &welcome.ports);
        let Registration {
            endpoint,
            addresses,
            pid,
            host,
            language,
            release,
            ranks,
            ..
        } = registration;
        let others = match ranks.len() {
            0 => String::new(),
            others => {
                welcome.between_ranks = Some(self.reserve(ranks::conduit_count(others as u32 + 1)));
                format!(" with {} ranks", others + 1)
            }
        };
        let text = format!("joined: process {pid} on {host}{others}, {language}, titin {release}");
        self.log(Level::Info, Some(id), text);
        let vectors = vectors(&welcome.ports)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let local = (host == self.host).then_some(pid);
        self.members[id].local = local;
        self.share_with(id, pid);
        // The guard reports the end of what it started; anything else on this host has to be watched.
        if local.is_some() && self.members[id].process != Process::Running(pid) {
            self.actions.push(Action::Watch(pid));
        }
        let here = ranks.iter().filter(|rank| rank.host == self.host);
        self.actions
            .extend(here.map(|rank| Action::Watch(rank.pid)));
        let member = &mut self.members[id];
        (member.ranks, member.refused) = (ranks, None);
        member.seat = Seat::Taken(Joined {
            link,
            endpoint,
            addresses,
            pid,
            host,
            vectors,
        });
        if let Some(state) = self.links.get_mut(&link) {
            state.members.push(id);
        }
        self.tell(link, ToProgram::Registered(Box::new(welcome)));
        let known: Vec<Peer> = self.peers[id]
            .iter()
            .filter_map(|&peer| self.peer(peer))
            .collect();
        if !known.is_empty() {
            self.tell(link, ToProgram::Peers { peers: known });
        }
        for &peer in &self.peers[id].clone() {
            if let Seat::Done = self.members[peer].seat {
                self.tell(
                    link,
                    ToProgram::Finished {
                        instance: self.name(peer).to_owned(),
                    },
                );
            }
        }
        self.start_held();
        let newcomer = self.peer(id).expect("it has just joined");
        // Once to each program, whichever of its instances are peers.
        let others = self.peers[id].iter().filter(|&&peer| peer != id);
        let links: BTreeSet<LinkId> = others
            .filter_map(|&peer| Some(self.members[peer].joined()?.link))
            .collect();
        for link in links {
            self.tell(
                link,
                ToProgram::Peers {
                    peers: vec![newcomer.clone()],
                },
            );
        }
    }

    /// The first of so many numbers that no other conduit gets.
    pub(super) fn reserve(&mut self, count: u32) -> ConduitId {
        let first = self.next_conduit;
        self.next_conduit += count;
        ConduitId(first)
    }

    fn welcome(&self, id: InstanceId, declared: Option<&[PortDeclaration]>) -> Welcome {
        let planned = &self.plan.instances[id];
        let mut ports = declared.map_or_else(|| self.described_ports(id), <[_]>::to_vec);
        let takes_settings = self.ends[id]
            .iter()
            .any(|&end| self.near(end).port == SETTINGS_IN);
        if takes_settings && !ports.iter().any(|port| port.name == SETTINGS_IN) {
            let (name, operator) = (SETTINGS_IN.into(), Operator::FInit.key().into());
            ports.push(PortDeclaration {
                name,
                operator,
                vector: false,
            });
        }
        let vectors = vectors(&ports);
        let timelines = planned.ports.iter();
        let timelines: HashMap<&str, &Name> = timelines
            .filter_map(|port| Some((port.name.as_str(), port.timeline.as_ref()?)))
            .collect();
        let wires = self.ends[id]
            .iter()
            .map(|&end| self.wire(end, &vectors, &timelines))
            .collect();
        let terms = &self.plan.terms;
        Welcome {
            instance: planned.name.clone(),
            ports,
            wires,
            settings: planned.settings.clone(),
            scale: planned.scale.clone(),
            filters: self.plan.filters.clone(),
            heartbeat: self.beat().as_secs_f64(),
            trace: terms.trace,
            counts_steps: self.plan.counts_steps(),
            end: planned.end,
            time_unit: terms.time_unit.clone(),
            components: self.plan.components.clone(),
            between_ranks: None,
        }
    }

    /// The ports of who declares none. Whether they have slots follows from the peers: there are several, or one that
    /// has joined already declares that it counts them.
    fn described_ports(&self, id: InstanceId) -> Vec<PortDeclaration> {
        let counts = |end: &End| {
            let peer = self.members[end.instance].joined();
            peer.is_some_and(|peer| peer.vectors.contains(&*end.port))
        };
        let has_slots = |&(conduit, sends): &(ConduitId, bool)| {
            let (here, there) = (self.near((conduit, sends)), self.near((conduit, !sends)));
            (here.slot.is_some() || there.slot.is_none() && counts(there))
                .then_some(here.port.as_str())
        };
        let vectors: HashSet<&str> = self.ends[id].iter().filter_map(has_slots).collect();
        let port = |port: &Port| PortDeclaration {
            name: port.name.to_string(),
            operator: port.operator.key().into(),
            vector: vectors.contains(port.name.as_str()),
        };
        self.plan.instances[id].ports.iter().map(port).collect()
    }

    /// Whether it is one of titin's own components that follows others in whether its ports have slots, and one of those has
    /// not joined yet.
    pub(super) fn depends_on_others(&self, id: InstanceId) -> bool {
        let follows = |&(conduit, sends): &(ConduitId, bool)| {
            let (here, there) = (self.near((conduit, sends)), self.near((conduit, !sends)));
            here.slot.is_none()
                && there.slot.is_none()
                && !self.plan.instances[there.instance].is_built_in()
                && matches!(self.members[there.instance].seat, Seat::Empty)
        };
        self.plan.instances[id].is_built_in() && self.ends[id].iter().any(follows)
    }

    /// Starts those that have waited for others to join.
    fn start_held(&mut self) {
        let held = std::mem::take(&mut self.held);
        let (held, ready): (Vec<_>, Vec<_>) =
            held.into_iter().partition(|&id| self.depends_on_others(id));
        self.held = held;
        for id in ready {
            self.members[id].since = self.now;
            self.expect_somebody();
            self.actions.push(Action::Start(id));
        }
    }

    fn wire(
        &self,
        (conduit, sends): (ConduitId, bool),
        vectors: &HashSet<&str>,
        timelines: &HashMap<&str, &Name>,
    ) -> ConduitEnd {
        let (here, there) = (self.near((conduit, sends)), self.near((conduit, !sends)));
        let planned = &self.plan.conduits[conduit.index()];
        let vector = vectors.contains(here.port.as_str());
        ConduitEnd {
            conduit,
            port: here.port.to_string(),
            slot: here.slot,
            sends,
            resizable: vector && here.slot.is_none(),
            timeline: timelines
                .get(here.port.as_str())
                .map(|timeline| timeline.to_string()),
            peer: self.name(there.instance).to_owned(),
            peer_port: there.port.to_string(),
            peer_slot: there.slot,
            filters: planned.filters.clone(),
            buffer_messages: planned.buffer_messages,
            buffer_bytes: planned.buffer_bytes,
            medium: planned.medium.map(|medium| medium.key().to_owned()),
            pattern: planned.pattern.clone(),
            link: planned.link.as_deref().copied().unwrap_or_default(),
        }
    }

    fn warn_of_unknown_ports(&mut self, id: InstanceId, ports: &[PortDeclaration]) {
        let planned = &self.plan.instances[id];
        let known: HashSet<&str> = planned
            .ports
            .iter()
            .map(|port| port.name.as_str())
            .collect();
        let unknown = |port: &&PortDeclaration| {
            port.name != SETTINGS_IN
                && !known.contains(port.name.as_str())
                && !planned.spare_ports.contains(&port.name)
        };
        let names: Vec<&str> = ports
            .iter()
            .filter(unknown)
            .map(|port| port.name.as_str())
            .collect();
        if !names.is_empty() {
            let text = format!(
                "declares {} that the description does not have; nothing is connected there",
                if names.len() == 1 {
                    format!("a port {}", names[0])
                } else {
                    format!("ports {}", names.join(", "))
                }
            );
            self.log(Level::Warning, Some(id), text);
        }
    }

    fn peer(&self, id: InstanceId) -> Option<Peer> {
        let joined = self.members[id].joined()?;
        Some(Peer {
            instance: self.name(id).to_owned(),
            endpoint: joined.endpoint,
            addresses: joined.addresses.clone(),
            ranks: self.members[id].ranks.clone(),
        })
    }

    /// The end of a conduit at which an instance sends, or receives.
    pub(super) fn near(&self, (conduit, sends): (ConduitId, bool)) -> &End {
        let conduit = &self.plan.conduits[conduit.index()];
        if sends { &conduit.from } else { &conduit.to }
    }
}

/// The names of the vector ports.
fn vectors(ports: &[PortDeclaration]) -> HashSet<&str> {
    ports
        .iter()
        .filter(|port| port.vector)
        .map(|port| port.name.as_str())
        .collect()
}

/// Why somebody may not join.
struct Refusal {
    text: String,
    /// As which, if that is one of the model's.
    instance: Option<InstanceId>,
    /// Whether the run fails by it.
    fatal: bool,
}

/// Compares the ports that a program declares with those that the description connects.
fn check_ports<'a>(
    planned: &Planned,
    ends: impl Iterator<Item = &'a End>,
    declared: &[PortDeclaration],
) -> Result<(), String> {
    let (name, component) = (&planned.name, &planned.component);
    let planned_ports: HashMap<&str, &Port> = planned
        .ports
        .iter()
        .map(|port| (port.name.as_str(), port))
        .collect();
    let declared_ports: HashMap<&str, &PortDeclaration> = declared
        .iter()
        .map(|port| (port.name.as_str(), port))
        .collect();
    for port in declared {
        let Some(known) = planned_ports.get(port.name.as_str()) else {
            continue;
        };
        let Some(operator) = Operator::from_key(&port.operator) else {
            return Err(format!(
                "{name} declares its port {} as {}, which is no operator: it is f_init, o_i, s or o_f",
                port.name, port.operator
            ));
        };
        let same = operator == known.operator
            || known.guessed && operator.receives() == known.operator.receives();
        if !same {
            return Err(format!(
                "{name} declares its port {} as {}, but in the description it is {} of {component}: change the one \
                 or the other",
                port.name, operator, known.operator
            ));
        }
    }
    for end in ends.filter(|end| end.port != SETTINGS_IN) {
        let names = || declared.iter().map(|port| port.name.as_str());
        let Some(port) = declared_ports.get(end.port.as_str()) else {
            let hint = match titin_model::nearest(&end.port, names()) {
                Some(near) => format!("it has {near}: is one of the two names misspelt?"),
                None => format!("it has {}", titin_model::listing(names())),
            };
            return Err(format!(
                "the description connects {component}.{}, but the program of {name} declares no such port; {hint}",
                end.port
            ));
        };
        if end.slot.is_some() && !port.vector {
            return Err(format!(
                "{component}.{} is joined to several instances, so the program of {name} must declare it as {}[]",
                end.port, end.port
            ));
        }
    }
    Ok(())
}
