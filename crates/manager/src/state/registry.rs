//! Registration of programs: checks, and the start of an instance's part in the run.
//!
//! An instance may join at any time, once. The program must declare the ports that the description
//! connects. So a misspelt port is found before another instance waits for the port.

use std::collections::{BTreeSet, HashMap};

use titin_model::{Operator, SETTINGS_IN};
use titin_transport::LinkId;
use titin_wire::control::{Peer, PortDeclaration, Registration, ToProgram, Welcome};
use titin_wire::ranks;

use super::Manager;
use super::fault::Fault;
use super::join_error::{JoinError, MOST_RANKS, PortMismatch};
use super::member::{InstanceProcess, JoinedInstance, Membership};
use super::welcome::vector_ports;
use crate::event::{Level, RunAction};
use crate::plan::{ConduitId, InstanceId, PlannedEnd, PlannedInstance, PlannedPort};

impl Manager {
    /// A program asks to join as an instance.
    pub(super) fn register(&mut self, link: LinkId, registration: Registration) {
        match self.check_registration(&registration) {
            Ok(id) => self.join_instance(link, id, registration),
            Err(error) => self.refuse(link, &registration, &error),
        }
    }

    /// Refuses a registration. The run fails if the manager has started the program, and only a
    /// change of the program or of the description can remove the error. A user who has started the
    /// program can correct the program and start it again. Where the user starts all programs, as
    /// under `titin manager`, wrong ports fail the run: all other programs wait meanwhile, often in a
    /// job.
    fn refuse(&mut self, link: LinkId, registration: &Registration, error: &JoinError) {
        let (name, text) = (&registration.instance, error.to_string());
        let id = self.names.get(name).copied();
        let has_failed = self.run_state.failure().is_some();
        let is_ours = id.is_some_and(|id| self.members[id].process != InstanceProcess::NotOurs);
        let has_wrong_ports = matches!(error, JoinError::Ports(_)) && id.is_some();
        let is_fatal = !has_failed
            && (is_ours && error.is_lasting() || has_wrong_ports && self.starts_nothing());
        // A fatal refusal is reported as the cause of the failure.
        if !is_fatal {
            let text = format!("{name} is not let in: {text}");
            self.log(Level::Warning, None, text);
        }
        let refused = ToProgram::Refused {
            instance: name.clone(),
            text: text.clone(),
        };
        self.tell(link, refused);
        let Some(id) = id else { return };
        let told = format!("process {} was not let in: {text}", registration.pid);
        self.remember_log(id, &told);
        let member = &mut self.members[id];
        if has_failed {
            member.too_late = true;
        } else if is_fatal {
            self.record_fault(id, Fault::Refused(text));
        } else {
            // A launcher that has started both processes may end the joined process because of the
            // refused process.
            member.refused_process.get_or_insert(told);
        }
    }

    /// Whether the user starts all programs.
    fn starts_nothing(&self) -> bool {
        let mut members = self.members.iter();
        members.all(|member| member.process == InstanceProcess::NotOurs)
    }

    /// The instance as which a program may join.
    fn check_registration(&self, registration: &Registration) -> Result<InstanceId, JoinError> {
        let name = &registration.instance;
        let Some(&id) = self.names.get(name) else {
            return Err(self.no_such_instance(name));
        };
        if let Some(failure) = self.run_state.failure() {
            let (culprit, _) = self.culprit_and_text(&failure.cause);
            return Err(JoinError::RunFailed { culprit });
        }
        self.check_membership(id, registration)?;
        let others = u32::try_from(registration.ranks.len()).unwrap_or(u32::MAX);
        let ranks = others.saturating_add(1);
        if ranks > MOST_RANKS || u32::MAX - self.next_conduit < ranks::conduit_count(ranks) {
            return Err(JoinError::TooManyRanks { ranks });
        }
        match &registration.ports {
            Some(ports) => {
                self.check_ports(id, ports)?;
                self.check_vectors(id, ports)?;
            }
            None => self.check_vectors(id, &self.described_ports(id))?,
        }
        Ok(id)
    }

    /// Checks that no program has joined as the instance before.
    fn check_membership(
        &self,
        id: InstanceId,
        registration: &Registration,
    ) -> Result<(), JoinError> {
        let name = self.name(id).to_owned();
        match &self.members[id].membership {
            _ if self.members[id].left_out => Err(JoinError::WasLost {
                name,
                why: "it has failed, and the run goes on without it".to_owned(),
            }),
            Membership::NotJoined => Ok(()),
            Membership::Joined(joined) => Err(JoinError::AlreadyJoined {
                name,
                joined: (joined.pid, joined.host.clone()),
                refused: (registration.pid, registration.host.clone()),
            }),
            Membership::Done => Err(JoinError::AlreadyClosed { name }),
            Membership::LinkLost(why) => Err(JoinError::WasLost {
                name,
                why: why.clone(),
            }),
        }
    }

    fn no_such_instance(&self, name: &str) -> JoinError {
        let instances = &self.plan.instances;
        let names = || instances.iter().map(|instance| instance.name.as_str());
        let hint = match titin_model::nearest(name, names()) {
            Some(near) => format!("; did you mean {near}?"),
            None => format!("; it has {}", titin_model::listing(names())),
        };
        match name {
            "" => JoinError::NoName { hint },
            _ => JoinError::NoSuchInstance {
                model: self.plan.model.clone(),
                name: name.to_owned(),
                hint,
            },
        }
    }

    /// Compares the declared ports of a program with the connected ports of the description.
    fn check_ports(
        &self,
        id: InstanceId,
        declared: &[PortDeclaration],
    ) -> Result<(), PortMismatch> {
        let planned = &self.plan.instances[id];
        check_operators(planned, declared)?;
        let by_name = declared.iter();
        let by_name: HashMap<&str, &PortDeclaration> =
            by_name.map(|port| (port.name.as_str(), port)).collect();
        let ends = self.conduit_ends[id].iter();
        let ends = ends.map(|&end| self.end_of(end));
        for end in ends.filter(|end| end.port != SETTINGS_IN) {
            match by_name.get(end.port.as_str()) {
                None => return Err(not_declared(planned, &end.port, declared)),
                Some(declared) if end.slot.is_some() && !declared.vector => {
                    return Err(no_vector(planned, &end.port));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Checks the slots of conduits between single instances: both ends must be vector ports, or
    /// neither.
    fn check_vectors(&self, id: InstanceId, ports: &[PortDeclaration]) -> Result<(), PortMismatch> {
        let vectors = vector_ports(ports);
        for &end in &self.conduit_ends[id] {
            let [here, there] = self.both_ends(end);
            let Some(peer) = self.members[there.instance].joined() else {
                continue;
            };
            if here.slot.is_some() || there.slot.is_some() || here.port == SETTINGS_IN {
                continue;
            }
            let is_here = vectors.contains(&*here.port);
            let is_there = peer.vectors.contains(&*there.port);
            if is_here != is_there {
                return Err(PortMismatch::OneVector {
                    here: self.with_brackets(here, is_here),
                    there: self.with_brackets(there, is_there),
                });
            }
        }
        Ok(())
    }

    /// An end of a conduit, with brackets behind a vector port.
    fn with_brackets(&self, end: &PlannedEnd, is_vector: bool) -> String {
        let brackets = if is_vector { "[]" } else { "" };
        format!("{}.{}{brackets}", self.name(end.instance), end.port)
    }

    /// Lets a program join.
    fn join_instance(&mut self, link: LinkId, id: InstanceId, registration: Registration) {
        let mut welcome = self.welcome(id, registration.ports.as_deref());
        self.warn_of_unknown_ports(id, &welcome.ports);
        let ranks = registration.ranks.len() as u32 + 1;
        if ranks > 1 {
            let first = self.reserve_conduits(ranks::conduit_count(ranks));
            welcome.between_ranks = Some(first);
        }
        self.log(Level::Info, Some(id), joined_text(&registration));
        self.watch_processes(id, &registration);
        self.seat(link, id, registration, &welcome);
        self.tell(link, ToProgram::Registered(Box::new(welcome)));
        self.tell_newcomer_of_peers(link, id);
        self.start_deferred();
        self.tell_peers_of_newcomer(id);
    }

    /// Watches the processes of an instance that no guard has started. A guard reports the end of its
    /// own processes.
    fn watch_processes(&mut self, id: InstanceId, registration: &Registration) {
        let process = self.process_on(&registration.host, registration.pid, id);
        self.members[id].known_process = process;
        if let Some(process) = process {
            self.assign_process_to(id, process);
            if self.members[id].process != InstanceProcess::Running(process) {
                self.actions.push(RunAction::WatchProcess(process));
            }
        }
        let ranks = registration.ranks.iter();
        let ranks = ranks.filter_map(|rank| self.process_on(&rank.host, rank.pid, id));
        let watch: Vec<_> = ranks.map(RunAction::WatchProcess).collect();
        self.actions.extend(watch);
    }

    /// Records the program as the joined instance.
    fn seat(
        &mut self,
        link: LinkId,
        id: InstanceId,
        registration: Registration,
        welcome: &Welcome,
    ) {
        let vectors = vector_ports(&welcome.ports);
        let member = &mut self.members[id];
        (member.ranks, member.refused_process) = (registration.ranks, None);
        member.membership = Membership::Joined(JoinedInstance {
            link,
            endpoint: registration.endpoint,
            addresses: registration.addresses,
            pid: registration.pid,
            host: registration.host,
            vectors: vectors.into_iter().map(str::to_owned).collect(),
        });
        if let Some(control_link) = self.links.get_mut(&link) {
            control_link.members.push(id);
        }
    }

    /// Tells a new program about its joined peers, and about its peers that are done.
    fn tell_newcomer_of_peers(&mut self, link: LinkId, id: InstanceId) {
        let peers = self.peers[id].iter();
        let known: Vec<Peer> = peers.filter_map(|&peer| self.peer(peer)).collect();
        if !known.is_empty() {
            self.tell(link, ToProgram::Peers { peers: known });
        }
        for &peer in &self.peers[id].clone() {
            if let Membership::Done = self.members[peer].membership {
                let instance = self.name_for_peers(peer);
                self.tell(link, ToProgram::Finished { instance });
            }
            if let Some(message) = self.member_failure(peer) {
                self.tell(link, message);
            }
        }
    }

    /// Tells each program with peers of an instance, once, that the instance has joined.
    fn tell_peers_of_newcomer(&mut self, id: InstanceId) {
        let Some(newcomer) = self.peer(id) else {
            return;
        };
        let others = self.peers[id].iter().filter(|&&peer| peer != id);
        let links: BTreeSet<LinkId> = others
            .filter_map(|&peer| Some(self.members[peer].joined()?.link))
            .collect();
        for link in links {
            let peers = vec![newcomer.clone()];
            self.tell(link, ToProgram::Peers { peers });
        }
    }

    /// Reserves numbers for conduits, and returns the first number.
    pub(super) fn reserve_conduits(&mut self, count: u32) -> ConduitId {
        let first = self.next_conduit;
        self.next_conduit += count;
        ConduitId(first)
    }

    /// Whether the instance must start after a peer that has not joined. The ports of a built-in
    /// component have slots if the ports of the peers have slots, so a built-in component starts
    /// after its peers.
    fn follows_absent_peers(&self, id: InstanceId) -> bool {
        let is_absent = |&end: &(ConduitId, bool)| {
            let [here, there] = self.both_ends(end);
            here.slot.is_none()
                && there.slot.is_none()
                && !self.plan.instances[there.instance].is_built_in()
                && matches!(
                    self.members[there.instance].membership,
                    Membership::NotJoined
                )
        };
        self.plan.instances[id].is_built_in() && self.conduit_ends[id].iter().any(is_absent)
    }

    /// Whether an instance may start now.
    pub(super) fn can_start(&self, id: InstanceId) -> bool {
        self.are_hosts_known() && !self.follows_absent_peers(id) && self.has_turn(id)
    }

    /// Starts the deferred instances that may start now.
    pub(super) fn start_deferred(&mut self) {
        for id in std::mem::take(&mut self.deferred_starts) {
            if !self.can_start(id) {
                self.deferred_starts.push(id);
                continue;
            }
            self.start(id);
        }
    }

    /// Has the program of an instance started.
    pub(super) fn start(&mut self, id: InstanceId) {
        self.count_start(id);
        self.members[id].waiting_since = self.now;
        self.expect_instances();
        self.actions.push(RunAction::StartProgram(id));
    }

    fn warn_of_unknown_ports(&mut self, id: InstanceId, ports: &[PortDeclaration]) {
        let planned = &self.plan.instances[id];
        let is_known = |name: &str| {
            name == SETTINGS_IN
                || planned.ports.iter().any(|port| port.name.as_str() == name)
                || planned.spare_ports.iter().any(|spare| spare == name)
        };
        let names = ports.iter().map(|port| port.name.as_str());
        let unknown: Vec<&str> = names.filter(|name| !is_known(name)).collect();
        let ports = match unknown[..] {
            [] => return,
            [port] => format!("a port {port}"),
            _ => format!("ports {}", unknown.join(", ")),
        };
        let text = format!(
            "declares {ports} that the description does not have; nothing is connected there"
        );
        self.log(Level::Warning, Some(id), text);
    }

    /// An instance in the form for peers, if the instance has joined.
    fn peer(&self, id: InstanceId) -> Option<Peer> {
        let joined = self.members[id].joined()?;
        Some(Peer {
            instance: self.name_for_peers(id),
            endpoint: joined.endpoint,
            addresses: joined.addresses.clone(),
            ranks: self.members[id].ranks.clone(),
        })
    }

    /// The given end of a conduit, and the other end.
    pub(super) fn both_ends(&self, (conduit, sends): (ConduitId, bool)) -> [&PlannedEnd; 2] {
        [sends, !sends].map(|sends| self.end_of((conduit, sends)))
    }

    /// The sending or the receiving end of a conduit.
    pub(super) fn end_of(&self, (conduit, sends): (ConduitId, bool)) -> &PlannedEnd {
        let conduit = &self.plan.conduits[conduit.index()];
        if sends { &conduit.from } else { &conduit.to }
    }
}

/// The text for the log about a new program.
fn joined_text(registration: &Registration) -> String {
    let Registration {
        pid,
        host,
        language,
        release,
        ..
    } = registration;
    let ranks = match registration.ranks.len() {
        0 => String::new(),
        others => format!(" with {} ranks", others + 1),
    };
    format!("joined: process {pid} on {host}{ranks}, {language}, titin {release}")
}

/// Checks that ports are declared with the operators of the description.
fn check_operators(
    planned: &PlannedInstance,
    declared: &[PortDeclaration],
) -> Result<(), PortMismatch> {
    let described = planned.ports.iter();
    let described: HashMap<&str, &PlannedPort> =
        described.map(|port| (port.name.as_str(), port)).collect();
    for port in declared {
        if let Some(described) = described.get(port.name.as_str()) {
            check_operator(planned, port, described)?;
        }
    }
    Ok(())
}

/// Checks that a port is declared with the operator of the description. If the operator of the
/// description is a guess from the conduits, only the direction has to agree.
fn check_operator(
    planned: &PlannedInstance,
    declared: &PortDeclaration,
    described: &PlannedPort,
) -> Result<(), PortMismatch> {
    let (name, port) = (planned.name.clone(), declared.name.clone());
    let Some(operator) = Operator::from_key(&declared.operator) else {
        return Err(PortMismatch::NoOperator {
            name,
            port,
            operator: declared.operator.clone(),
        });
    };
    let agrees = operator == described.operator
        || described.guessed && operator.receives() == described.operator.receives();
    match agrees {
        true => Ok(()),
        false => Err(PortMismatch::OtherOperator {
            name,
            component: planned.component.clone(),
            port,
            declared: operator,
            described: described.operator,
        }),
    }
}

/// The error of a port that must be a vector port.
fn no_vector(planned: &PlannedInstance, port: &str) -> PortMismatch {
    PortMismatch::NoVector {
        name: planned.name.clone(),
        component: planned.component.clone(),
        port: port.to_owned(),
    }
}

/// The error of an undeclared port, with a similar name as a hint.
fn not_declared(
    planned: &PlannedInstance,
    port: &str,
    declared: &[PortDeclaration],
) -> PortMismatch {
    let names = || declared.iter().map(|port| port.name.as_str());
    PortMismatch::NotDeclared {
        name: planned.name.clone(),
        component: planned.component.clone(),
        port: port.to_owned(),
        hint: match titin_model::nearest(port, names()) {
            Some(near) => format!("it has {near}: is one of the two names misspelt?"),
            None => format!("it has {}", titin_model::listing(names())),
        },
    }
}
