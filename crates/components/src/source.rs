//! `titin.source`: sends the contents of files.
//!
//! In each use, the source sends the file of each O_I port from the beginning, in the order of time
//! over all ports, and one record by each O_F port. The source receives messages on F_INIT and S
//! ports and drops the messages: F_INIT begins the uses, S keeps step with a peer. So a source can
//! stand in for a submodel whose messages were kept in files.
//!
//! Settings, for all ports or for a single port (`rain.file`): `file`, `format`, `dt`, `t0`,
//! `t_max`, `repeat`, `period`; for `.npy` `time_axis`; for CSV `time_column`, `columns`, `form`,
//! `dtype`, `delimiter`; `slots`.

use std::path::PathBuf;

use titin_runtime::{BuiltIn, Instance, Operator, Setting};

use crate::data::send;
use crate::feed::{FedMessage, Feed, FeedPlan, Repeat};
use crate::file_names::{NameFields, fill, has_slot, locate};
use crate::mapper::{InstancePort, PortOrSlot, connected, ends, receive_round};
use crate::settings::ComponentSettings;
use crate::{Error, Result};

pub(crate) fn run(instance: &Instance, folders: &[PathBuf]) -> Result<()> {
    use Operator::{FInit, OF, OI, S};
    let [f_init, s, o_i, o_f] = [FInit, S, OI, OF].map(|operator| connected(instance, operator));
    let mut finals: Vec<PortFeed> = Vec::new();
    while instance.reuse()? {
        let begun = receive_round(instance, &f_init)?.unwrap_or_default();
        let timestamps = begun.iter().map(|received| received.message.timestamp);
        let now = timestamps.reduce(f64::max).unwrap_or(0.0);
        sweep(instance, plans(instance, folders, &o_i, true)?, &s, now)?;
        let plans = plans(instance, folders, &o_f, false)?;
        // From use to use, an overlay of settings may name another file.
        let current = finals.iter().map(|feed| feed.feed.plan());
        if current.ne(plans.iter().map(|planned| &planned.plan)) {
            finals = open_feeds(plans, now)?;
        }
        send_finals(instance, &mut finals, now)?;
    }
    let single = f_init.is_empty();
    finals
        .iter_mut()
        .try_for_each(|feed| all_sent(instance, feed, single))
}

/// Sends a message by each O_F port, at the end of a use.
fn send_finals(instance: &Instance, feeds: &mut [PortFeed], now: f64) -> Result<()> {
    for feed in feeds {
        let Some(fed) = feed.feed.next(now)? else {
            let why = format!(
                "{} is used once more than it has messages; set `repeat: true` to begin it again",
                instance.name()
            );
            return Err(Error::file(&feed.feed.plan().file, why));
        };
        feed.send(instance, &fed)?;
    }
    Ok(())
}

/// The plan of a feed, and the ends that are to send the feed's messages.
struct PlannedFeed {
    ends: Vec<PortOrSlot>,
    plan: FeedPlan,
}

fn open_feeds(plans: Vec<PlannedFeed>, now: f64) -> Result<Vec<PortFeed>> {
    let plans = plans.into_iter();
    plans.map(|planned| PortFeed::open(planned, now)).collect()
}

/// A feed, and the ends that send the feed's messages.
struct PortFeed {
    ends: Vec<PortOrSlot>,
    feed: Feed,
    head: Option<FedMessage>,
}

impl PortFeed {
    fn open(planned: PlannedFeed, now: f64) -> Result<Self> {
        Ok(PortFeed {
            ends: planned.ends,
            feed: Feed::open(planned.plan, now)?,
            head: None,
        })
    }

    fn send(&self, instance: &Instance, fed: &FedMessage) -> Result<()> {
        self.ends
            .iter()
            .try_for_each(|end| send(instance, end.port, end.slot, &fed.value, &fed.meta))
    }
}

/// Sends all messages for O_I ports, the earliest first. After the messages of each time, S ports
/// get their turn.
fn sweep(instance: &Instance, plans: Vec<PlannedFeed>, s: &[InstancePort], now: f64) -> Result<()> {
    let mut planned = plans.iter().map(|planned| &planned.plan);
    if let Some(plan) = planned.find(|plan| plan.is_endless()) {
        let why = "it would be repeated for ever; set `t_max`, or how often to `repeat` it";
        return Err(Error::file(&plan.file, why));
    }
    let mut feeds = open_feeds(plans, now)?;
    for feed in &mut feeds {
        feed.head = feed.feed.next(now)?;
    }
    while send_earliest(instance, &mut feeds, now)? {
        if receive_round(instance, s)?.is_none() {
            let text = format!(
                "{}: nothing more comes in on S, but there are more steps to send; set `t_max` to end where the peer does",
                instance.name()
            );
            return Err(Error::Data(text));
        }
    }
    Ok(())
}

/// Sends the messages of the earliest time. Returns whether there was a message.
fn send_earliest(instance: &Instance, feeds: &mut [PortFeed], now: f64) -> Result<bool> {
    let heads = feeds.iter().filter_map(|feed| feed.head.as_ref());
    let times = heads.map(|head| head.meta.timestamp);
    let Some(time) = times.reduce(f64::min) else {
        return Ok(false);
    };
    for feed in feeds {
        let Some(head) = feed.head.take_if(|head| head.meta.timestamp == time) else {
            continue;
        };
        feed.send(instance, &head)?;
        feed.head = feed.feed.next(now)?;
    }
    Ok(true)
}

/// If there can be only a single use, a file sent by O_F ports must hold at most a single message.
fn all_sent(instance: &Instance, feed: &mut PortFeed, single: bool) -> Result<()> {
    if !single || feed.feed.plan().repeat == Repeat::Endless || feed.feed.next(0.0)?.is_none() {
        return Ok(());
    }
    let why = format!(
        "it has several messages, and {} sends one by an O_F port; make the port O_I, or connect an F_INIT port that says \
         how often to use it",
        instance.name()
    );
    Err(Error::file(&feed.feed.plan().file, why))
}

/// The feeds of ports. If the file's name has a place for the slot, each slot has a feed of its own.
fn plans(
    instance: &Instance,
    folders: &[PathBuf],
    ports: &[InstancePort],
    steps: bool,
) -> Result<Vec<PlannedFeed>> {
    let planner = FeedPlanner {
        instance,
        folders,
        settings: ComponentSettings::new(instance, BuiltIn::Source)?,
        steps,
    };
    let mut plans = Vec::new();
    for port in ports {
        let pattern = planner.pattern(&port.info.name)?;
        if port.info.resizable {
            planner.set_slots(port)?;
        }
        let ends = ends(instance, port);
        let groups = match has_slot(&pattern) {
            true => ends.into_iter().map(|end| vec![end]).collect(),
            false => vec![ends],
        };
        for ends in groups {
            plans.push(planner.feed(port, &pattern, ends)?);
        }
    }
    Ok(plans)
}

/// Makes the plans of feeds from settings.
struct FeedPlanner<'a> {
    instance: &'a Instance,
    folders: &'a [PathBuf],
    settings: ComponentSettings<'a>,
    /// Whether all records of a file are steps of a single use.
    steps: bool,
}

impl FeedPlanner<'_> {
    /// The name of a port's file, with places to fill in.
    fn pattern(&self, port: &str) -> Result<String> {
        self.settings.text(port, "file")?.ok_or_else(|| {
            Error::Setting(format!(
                "{}: which file port '{port}' is to send is not set; set `file` or `{port}.file`",
                self.instance.name()
            ))
        })
    }

    fn set_slots(&self, port: &InstancePort) -> Result<()> {
        let name = &port.info.name;
        let slots = self.settings.count(name, "slots")?;
        let Some(slots) = slots.and_then(|slots| u32::try_from(slots).ok()) else {
            let text = format!(
                "{}: set `slots`, the number of slots of port '{name}'",
                self.instance.name()
            );
            return Err(Error::Setting(text));
        };
        Ok(self.instance.set_slots(port.id, slots)?)
    }

    /// The feed of a port, or of a slot.
    fn feed(
        &self,
        port: &InstancePort,
        pattern: &str,
        ends: Vec<PortOrSlot>,
    ) -> Result<PlannedFeed> {
        let (settings, name) = (&self.settings, port.info.name.as_str());
        let slot = ends.first().and_then(|end| end.slot);
        let fields = NameFields {
            instance: self.instance.name(),
            port: name,
            slot: slot.filter(|_| has_slot(pattern)),
        };
        let file = fill(pattern, fields)?;
        let plan = FeedPlan {
            reading: settings.reading(name, pattern)?,
            file: locate(&file, self.folders)?,
            steps: self.steps,
            dt: settings.time(name, "dt")?,
            t0: settings.time(name, "t0")?,
            t_max: settings.time(name, "t_max")?,
            repeat: repeat(settings, name)?,
            period: settings.time(name, "period")?,
        };
        Ok(PlannedFeed { ends, plan })
    }
}

fn repeat(settings: &ComponentSettings<'_>, port: &str) -> Result<Repeat> {
    let Some(value) = settings.find(port, "repeat")? else {
        return Ok(Repeat::Times(1));
    };
    match value.value() {
        Setting::Bool(true) => Ok(Repeat::Endless),
        Setting::Bool(false) => Ok(Repeat::Times(1)),
        Setting::Int(times) if *times > 0 => Ok(Repeat::Times(*times as u64)),
        other => {
            let text = format!(
                "setting 'repeat' is {other}; it can be true, or how often to go through the file"
            );
            Err(Error::Setting(text))
        }
    }
}
