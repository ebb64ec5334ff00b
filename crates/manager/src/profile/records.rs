//! The contents of a profile.

use std::collections::HashMap;

use serde::Serialize;
use titin_model::Pattern;

use super::EventClass;
use crate::plan::{Plan, PlannedEnd};

/// The profile of a run, without the rows of a trace.
#[derive(Debug, Default, Serialize)]
pub struct RunProfile {
    /// The run; `None` if another system has written the profile.
    pub run: Option<RunTotals>,
    /// The times of each instance.
    pub instances: Vec<InstanceTotals>,
    /// The traffic of each conduit.
    pub conduits: Vec<ConduitTotals>,
    /// The regions of the programs.
    pub regions: Vec<RegionTotals>,
    /// The times at each site, if there were several.
    pub sites: Vec<SiteTotals>,
    /// Whether there is a row for each message.
    pub traced: bool,
}

impl RunProfile {
    /// Notes in a plan the bytes of each conduit in the recorded run. A conduit that the recorded run did
    /// not have counts as empty.
    pub fn note_bytes(&self, plan: &mut Plan) {
        let recorded = self.conduits.iter();
        let recorded: HashMap<(&str, &str), i64> = recorded
            .map(|conduit| ((conduit.from.as_str(), conduit.to.as_str()), conduit.bytes))
            .collect();
        let end = |end: &PlannedEnd| format!("{}.{end}", plan.instances[end.instance].name);
        let bytes = plan.conduits.iter().map(|conduit| {
            let (from, to) = (end(&conduit.from), end(&conduit.to));
            let bytes = recorded.get(&(from.as_str(), to.as_str()));
            bytes.map_or(0, |bytes| u64::try_from(*bytes).unwrap_or(0))
        });
        plan.earlier_bytes = bytes.collect();
    }
}

/// The run as a whole.
#[derive(Debug, Serialize)]
pub struct RunTotals {
    /// The model.
    pub model: String,
    /// The host of the manager.
    pub host: String,
    /// The duration of the run.
    pub seconds: f64,
    /// "done", or why the run failed.
    pub outcome: String,
}

/// The times of an instance, in seconds.
#[derive(Debug, Serialize)]
pub struct InstanceTotals {
    /// The instance's number in the file.
    #[serde(skip)]
    pub oid: i64,
    /// The name as users write it.
    pub name: String,
    /// The cores that the instance was given.
    pub cores: Vec<i64>,
    /// The site, if the run had several.
    pub site: Option<String>,
    /// The process, if it has told what it used.
    pub process: Option<ProcessTotals>,
    /// The beginning, since the Unix epoch.
    pub start: f64,
    /// From the beginning to the end.
    pub total: f64,
    /// The rest of the time: the instance's own work.
    pub compute: f64,
    /// Waiting to receive.
    pub waiting: f64,
    /// Taking in messages after their arrival. Only MUSCLE3 counts the time separately.
    pub receiving: f64,
    /// Sending, with the time blocked.
    pub sending: f64,
    /// Waiting for room to send.
    pub blocked: f64,
}

/// What the process of an instance has used of its host. Several instances may share the process.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ProcessTotals {
    /// The process id on the host.
    pub pid: u32,
    /// The processor time of all threads, in seconds.
    pub processor: f64,
    /// The most bytes that were resident in memory at a time.
    pub peak_memory: i64,
}

/// The times of all instances at a site, in seconds.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct SiteTotals {
    /// The name.
    pub site: String,
    /// The number of instances.
    pub instances: usize,
    /// The sum of the instances' totals, and the parts as in [`InstanceTotals`].
    pub total: f64,
    /// The instances' own work.
    pub compute: f64,
    /// Waiting to receive.
    pub waiting: f64,
    /// Sending, with the time blocked.
    pub sending: f64,
    /// The part of the waiting, to receive or to send, that was for instances at other sites.
    pub for_other_sites: f64,
}

/// An instance that has not reported its totals.
#[derive(Debug)]
pub struct UnfinishedInstance {
    /// The instance's number in the file.
    pub oid: i64,
    /// The name as users write it.
    pub name: String,
    /// The end of the last row from the instance, in nanoseconds since the Unix epoch.
    pub last: Option<i64>,
}

/// The traffic of a conduit.
#[derive(Debug, Default, Serialize)]
pub struct ConduitTotals {
    /// The sender's port.
    pub from: String,
    /// The receiver's port.
    pub to: String,
    /// The medium.
    pub medium: String,
    /// The number of streams for large messages, if there were several.
    pub streams: Option<i64>,
    /// The addresses of the sender and of the receiver, if messages travelled by a tcp connection
    /// between them.
    pub addresses: Option<[String; 2]>,
    /// Why the medium is not shared memory, if shared memory was tried.
    pub detour: Option<String>,
    /// Messages.
    pub messages: i64,
    /// Messages by a socket, because no shared memory was left.
    pub by_socket: i64,
    /// Payload bytes.
    pub bytes: i64,
    /// Messages that were compressed.
    pub compressed: i64,
    /// The bytes of all messages before compression; 0 if no message was compressed.
    pub uncompressed_bytes: i64,
    /// Bytes copied by the sender and by the receiver.
    pub copied: i64,
    /// The sender's time of waiting for room, in seconds.
    pub sender_waited: f64,
    /// The receiver's time of waiting for messages, in seconds.
    pub receiver_waited: f64,
    /// The last limit of the buffer, in messages.
    pub buffer: i64,
    /// How often the buffer was raised.
    pub raised: i64,
}

/// A conduit that carried a field.
#[derive(Debug)]
pub struct RecordedField {
    /// The sender's port.
    pub from: String,
    /// The receiver's port.
    pub to: String,
    /// The decomposition of the sender's array, and the coupled region, as encoded by
    /// `titin-array`.
    pub sender: Vec<u8>,
    /// The decomposition of the receiver's array, and the coupled region.
    pub receiver: Vec<u8>,
    /// Bytes of an element of each array of the field.
    pub sizes: Vec<u64>,
    /// How the description couples the field.
    pub pattern: Option<Pattern>,
}

/// A region of a program.
#[derive(Debug, Serialize)]
pub struct RegionTotals {
    /// The instance.
    pub instance: String,
    /// The name of the region.
    pub name: String,
    /// How often the region was entered.
    pub uses: i64,
    /// The time in the region.
    pub seconds: f64,
}

/// A row of a trace.
#[derive(Debug)]
pub struct TraceEvent {
    /// The instance's `oid`.
    pub instance: i64,
    /// The current activity.
    pub class: EventClass,
    /// The kind of the event, such as `SEND`, or the name of a region.
    pub kind: String,
    /// The beginning, in nanoseconds since the Unix epoch.
    pub start: i64,
    /// The end, in nanoseconds since the Unix epoch.
    pub stop: i64,
    /// The port, with its slot.
    pub port: Option<String>,
    /// The conduit's number.
    pub conduit: Option<i64>,
    /// The message's number on the conduit.
    pub number: Option<i64>,
    /// Payload bytes.
    pub bytes: Option<i64>,
    /// The simulated time.
    pub timestamp: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{Choices, compile};
    use titin_model::{LoadOptions, load_texts};

    #[test]
    fn bytes_go_to_the_conduits_of_the_same_ends() {
        let text = "ymmsl_version: v0.2\nmodels: {m: {components: {\
                    a: {description: x, ports: {o_f: [out, one]}, implementation: p}, \
                    b: {description: x, ports: {f_init: in}, implementation: p, multiplicity: 2}, \
                    c: {description: x, ports: {f_init: in}, implementation: p}}, \
                    conduits: {a.out: b.in, a.one: c.in}}}\nprograms: {p: {executable: p}}\n";
        let description = load_texts(&[("m", text)], &LoadOptions::default()).unwrap();
        let network = description.network(None).unwrap();
        let mut plan = compile(&network, &[], &Choices::default()).unwrap();
        let mut profile = RunProfile::default();
        for (from, to, bytes) in [
            ("a.out[1]", "b[1].in", 1000),
            ("a.one", "c.in", 7),
            ("a.out", "gone.in", 3),
            ("a.out[0]", "b[0].in", -1),
        ] {
            profile.conduits.push(ConduitTotals {
                from: from.to_owned(),
                to: to.to_owned(),
                bytes,
                ..ConduitTotals::default()
            });
        }
        profile.note_bytes(&mut plan);
        let ends = plan
            .conduits
            .iter()
            .map(|conduit| plan.instances[conduit.to.instance].name.as_str());
        let noted: HashMap<&str, u64> = ends.zip(plan.earlier_bytes.iter().copied()).collect();
        assert_eq!(
            noted,
            HashMap::from([("b[0]", 0), ("b[1]", 1000), ("c", 7)])
        );
    }
}
