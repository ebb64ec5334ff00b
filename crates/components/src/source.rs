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
    let receiving = [Operator::FInit, Operator::S].map(|operator| connected(instance, operator));
    let [f_init, s] = receiving;
    let (o_i, o_f) = (
        connected(instance, Operator::OI),
        connected(instance, Operator::OF),
    );
    let mut finals: Vec<PortFeed> = Vec::new();
    while instance.reuse()? {
        let begun = receive_round(instance, &f_init)?.unwrap_or_default();
        let now = begun
            .iter()
            .map(|received| received.message.timestamp)
            .reduce(f64::max)
            .unwrap_or(0.0);
        sweep(instance, plans(instance, folders, &o_i, true)?, &s, now)?;
        let plans = plans(instance, folders, &o_f, false)?;
        // From use to use, an overlay of settings may name another file.
        if finals
            .iter()
            .map(|lane| lane.feed.plan())
            .ne(plans.iter().map(|(_, plan)| plan))
        {
            finals = plans
                .into_iter()
                .map(|(ends, plan)| PortFeed::open(ends, plan, now))
                .collect::<Result<_>>()?;
        }
        for lane in &mut finals {
            let Some(fed) = lane.feed.next(now)? else {
                let why = format!(
                    "{} is used once more than it has messages; set `repeat: true` to begin it again",
                    instance.name()
                );
                return Err(Error::file(&lane.feed.plan().file, why));
            };
            lane.send(instance, &fed)?;
        }
    }
    finals
        .iter_mut()
        .try_for_each(|lane| all_sent(instance, lane, f_init.is_empty()))
}

/// A feed, and the ends that send the feed's messages.
struct PortFeed {
    ends: Vec<PortOrSlot>,
    feed: Feed,
    head: Option<FedMessage>,
}

impl PortFeed {
    fn open(ends: Vec<PortOrSlot>, plan: FeedPlan, now: f64) -> Result<Self> {
        Ok(PortFeed {
            ends,
            feed: Feed::open(plan, now)?,
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
fn sweep(
    instance: &Instance,
    plans: Vec<(Vec<PortOrSlot>, FeedPlan)>,
    s: &[InstancePort],
    now: f64,
) -> Result<()> {
    if let Some((_, plan)) = plans
        .iter()
        .find(|(_, plan)| plan.repeat == Repeat::Endless && plan.t_max.is_none())
    {
        let why = "it would be repeated for ever; set `t_max`, or how often to `repeat` it";
        return Err(Error::file(&plan.file, why));
    }
    let mut lanes: Vec<PortFeed> = plans
        .into_iter()
        .map(|(ends, plan)| PortFeed::open(ends, plan, now))
        .collect::<Result<_>>()?;
    for lane in &mut lanes {
        lane.head = lane.feed.next(now)?;
    }
    loop {
        let times = lanes
            .iter()
            .filter_map(|lane| lane.head.as_ref())
            .map(|head| head.meta.timestamp);
        let Some(time) = times.reduce(f64::min) else {
            return Ok(());
        };
        for lane in &mut lanes {
            let Some(head) = lane.head.take_if(|head| head.meta.timestamp == time) else {
                continue;
            };
            lane.send(instance, &head)?;
            lane.head = lane.feed.next(now)?;
        }
        if receive_round(instance, s)?.is_none() {
            let text = format!(
                "{}: nothing more comes in on S, but there are more steps to send; set `t_max` to end where the peer does",
                instance.name()
            );
            return Err(Error::Data(text));
        }
    }
}

/// If there can be only a single use, a file sent by O_F ports must hold at most a single message.
fn all_sent(instance: &Instance, lane: &mut PortFeed, single: bool) -> Result<()> {
    if !single || lane.feed.plan().repeat == Repeat::Endless || lane.feed.next(0.0)?.is_none() {
        return Ok(());
    }
    let why = format!(
        "it has several messages, and {} sends one by an O_F port; make the port O_I, or connect an F_INIT port that says \
         how often to use it",
        instance.name()
    );
    Err(Error::file(&lane.feed.plan().file, why))
}

/// The feed of each port. If the file's name has a place for the slot, each slot has a feed of its
/// own.
fn plans(
    instance: &Instance,
    folders: &[PathBuf],
    ports: &[InstancePort],
    steps: bool,
) -> Result<Vec<(Vec<PortOrSlot>, FeedPlan)>> {
    let settings = ComponentSettings::new(instance, BuiltIn::Source)?;
    let mut plans = Vec::new();
    for port in ports {
        let name = &port.info.name;
        let Some(pattern) = settings.text(name, "file")? else {
            let text = format!(
                "{}: which file port '{name}' is to send is not set; set `file` or `{name}.file`",
                instance.name()
            );
            return Err(Error::Setting(text));
        };
        if port.info.resizable {
            let Some(slots) = settings
                .count(name, "slots")?
                .and_then(|slots| u32::try_from(slots).ok())
            else {
                let text = format!(
                    "{}: set `slots`, the number of slots of port '{name}'",
                    instance.name()
                );
                return Err(Error::Setting(text));
            };
            instance.set_slots(port.id, slots)?;
        }
        let ends = ends(instance, port);
        let groups = if has_slot(&pattern) {
            ends.into_iter().map(|end| vec![end]).collect()
        } else {
            vec![ends]
        };
        for group in groups {
            let slot = group
                .first()
                .and_then(|end| end.slot)
                .filter(|_| has_slot(&pattern));
            let file = fill(
                &pattern,
                NameFields {
                    instance: instance.name(),
                    port: name,
                    slot,
                },
            )?;
            let plan = FeedPlan {
                reading: settings.reading(name, &pattern)?,
                file: locate(&file, folders)?,
                steps,
                dt: settings.time(name, "dt")?,
                t0: settings.time(name, "t0")?,
                t_max: settings.time(name, "t_max")?,
                repeat: repeat(&settings, name)?,
                period: settings.time(name, "period")?,
            };
            plans.push((group, plan));
        }
    }
    Ok(plans)
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
