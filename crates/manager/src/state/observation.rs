//! The answer to an observer: the state of the run, in numbers and words.

use titin_transport::LinkId;
use titin_wire::control::ToProgram;
use titin_wire::observation::{AwaitedPort, ObservedInstance, ObservedRun, ProcessPlace};

use super::Manager;
use super::member::InstanceProcess;
use super::wait_graph::ReportedWait;
use crate::host::{HostId, ProcessId};
use crate::plan::InstanceId;

/// The most alternatives of a wait in an answer. An instance may wait for any of thousands of messages.
const MOST_WAITS: usize = 4;

impl Manager {
    /// Answers an observer.
    pub(super) fn answer_observer(&mut self, link: LinkId) {
        let failure = self.run_state.failure();
        let observed = ObservedRun {
            model: self.plan.model.clone(),
            host: self.hosts[HostId::MANAGER.index()]
                .system_name()
                .unwrap_or_default()
                .to_owned(),
            seconds: self.now.as_secs_f64(),
            failure: failure.map(|failure| self.failure_line(failure)),
            instances: self.ids().map(|id| self.observed_instance(id)).collect(),
        };
        self.tell(link, ToProgram::Observed(Box::new(observed)));
    }

    fn observed_instance(&self, id: InstanceId) -> ObservedInstance {
        let status = self.instance_status(id);
        let wait = self.deadlock_search.graph().get(&id);
        let exit = self.exit(id).filter(|exit| !exit.is_success());
        let position = status.position.as_ref();
        ObservedInstance {
            name: status.name,
            state: status.phase.name().to_owned(),
            simulated: position.and_then(|position| position.simulated),
            end: status.end,
            messages: position.map_or(0, |position| position.messages),
            bytes: position.map_or(0, |position| position.bytes),
            process: self
                .process_of(id)
                .map(|process| self.process_place(process)),
            text: match wait {
                Some(wait) => Some(wait.to_string()),
                None => exit.map(|exit| exit.to_string()),
            },
            waits: wait.map_or_else(Vec::new, awaited_ports),
        }
    }

    /// The process of an instance that has not ended, as far as it is known.
    fn process_of(&self, id: InstanceId) -> Option<ProcessId> {
        let member = &self.members[id];
        match member.process {
            InstanceProcess::Running(process) => member.known_process.or(Some(process)),
            InstanceProcess::NotOurs => member.known_process,
            _ => None,
        }
    }

    fn process_place(&self, process: ProcessId) -> ProcessPlace {
        let ProcessId { host, pid } = process;
        let is_further = host != HostId::MANAGER;
        ProcessPlace {
            host: is_further.then(|| self.host_name(host).to_owned()),
            pid,
        }
    }
}

fn awaited_ports(wait: &ReportedWait) -> Vec<AwaitedPort> {
    let awaited = wait.awaited.iter().take(MOST_WAITS);
    awaited
        .map(|on| AwaitedPort {
            port: on.reported.port.clone(),
            peer: on.reported.peer.clone(),
            peer_port: on.reported.peer_port.clone(),
            sends: on.is_for_room(),
        })
        .collect()
}
