//! `titin.sink`: writes received messages to files.
//!
//! Settings, for all ports or for a single port (`rain.file`): `file`, by default the port's name
//! with `.jsonl`; `format`, if the file's ending does not name the format. A name with `{step}`
//! makes a file for each message, of `.npy` only.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};

use titin_runtime::{BuiltIn, Instance, Message, Operator, Patience, PortId};

use crate::data::{MessageMeta, View, view};
use crate::error::OnFile;
use crate::file_names::{NameFields, fill, has_slot, has_step, series_name, step_file};
use crate::format::{Format, MessageWriter, TimesWriter, array_of, write_npy, writer};
use crate::mapper::{InstancePort, connected, each_slot, ends, receive_round, unless_closed};
use crate::settings::{ComponentSettings, meta_of};
use crate::{Error, Result};

pub(crate) fn run(instance: &Instance) -> Result<()> {
    check_no_port_sends(instance)?;
    let (f_init, s) = (
        connected(instance, Operator::FInit),
        connected(instance, Operator::S),
    );
    let mut sink = Sink {
        instance,
        files: SinkFiles::default(),
    };
    while instance.reuse()? {
        for received in receive_round(instance, &f_init)?.unwrap_or_default() {
            sink.keep(&received.port, received.slot, &received.message)?;
        }
        sink.take_steps(&s, !f_init.is_empty())?;
    }
    Ok(())
}

fn check_no_port_sends(instance: &Instance) -> Result<()> {
    let sending = [Operator::OI, Operator::OF].map(|operator| connected(instance, operator));
    let Some(InstancePort { info, .. }) = sending.iter().flatten().next() else {
        return Ok(());
    };
    Err(Error::Setting(format!(
        "{}: a sink only receives, but {} port '{}' sends",
        instance.name(),
        info.operator,
        info.name
    )))
}

struct Sink<'a> {
    instance: &'a Instance,
    files: SinkFiles,
}

impl Sink<'_> {
    /// Receives on S ports as long as messages come. In a use begun by F_INIT, the message without
    /// a next timestamp is the last.
    fn take_steps(&mut self, s: &[InstancePort], ends_by_itself: bool) -> Result<()> {
        if ends_by_itself {
            for port in s {
                each_slot(self.instance, port, |slot| {
                    while self.take_one(port, slot)? {}
                    Ok(())
                })?;
            }
            return Ok(());
        }
        // If the sender sets the number of a port's slots, the port has no slots before the first
        // message.
        for port in s.iter().filter(|port| ends(self.instance, port).is_empty()) {
            self.take_one(port, Some(0))?;
        }
        let ids: Vec<PortId> = s.iter().map(|port| port.id).collect();
        while self.take_any(&ids)? {}
        Ok(())
    }

    /// Receives a message on any of the ports. Returns false if all ports are closed.
    fn take_any(&mut self, ports: &[PortId]) -> Result<bool> {
        let has_slots = |id: &PortId| self.instance.info(*id).slots > 0;
        let ports: Vec<PortId> = ports.iter().copied().filter(has_slots).collect();
        if ports.is_empty() {
            return Ok(false);
        }
        let received = self.instance.receive_any(&ports, Patience::Forever);
        let Some((id, slot, message)) = unless_closed(received)? else {
            return Ok(false);
        };
        let info = self.instance.info(id);
        self.keep(&info.name, info.vector.then_some(slot), &message)?;
        Ok(true)
    }

    /// Receives a message. Returns whether more messages follow in this use.
    fn take_one(&mut self, port: &InstancePort, slot: Option<u32>) -> Result<bool> {
        let Some(message) = unless_closed(self.instance.receive(port.id, slot, Patience::Forever))?
        else {
            return Ok(false);
        };
        self.keep(&port.info.name, slot, &message)?;
        Ok(message.next_timestamp.is_some())
    }

    fn keep(&mut self, port: &str, slot: Option<u32>, message: &Message) -> Result<()> {
        let settings = ComponentSettings::new(self.instance, BuiltIn::Sink)?;
        let (pattern, format) = wanted(&settings, port, slot)?;
        let purpose = NameFields {
            instance: self.instance.name(),
            port,
            slot,
        };
        let name = fill(&pattern, purpose)?;
        let target = self.files.target((port.to_owned(), slot), name, format);
        let target = target.map_err(|why| match why {
            FileError::OfOtherPort(other, name) => Error::Setting(format!(
                "{}: ports '{other}' and '{port}' would both write {}; put {{port}} or {{slot}} into the name",
                purpose.instance,
                name.display()
            )),
            FileError::File(error) => error,
        })?;
        target.write(&view(message), &meta_of(message))
    }
}

/// The name and format of a port's file.
fn wanted(
    settings: &ComponentSettings<'_>,
    port: &str,
    slot: Option<u32>,
) -> Result<(String, Format)> {
    let pattern = settings
        .text(port, "file")?
        .unwrap_or_else(|| "{port}.jsonl".to_owned());
    let format = settings.format(port, &pattern)?;
    if has_step(&pattern) && format != Format::Npy {
        let text = format!(
            "file '{pattern}' has a {{step}}, and only .npy files are written one a message"
        );
        return Err(Error::Setting(text));
    }
    Ok((
        if slot.is_some() && !has_slot(&pattern) {
            with_slot(&pattern)
        } else {
            pattern
        },
        format,
    ))
}

/// `state.npy` becomes `state_{slot}.npy`.
fn with_slot(pattern: &str) -> String {
    let path = Path::new(pattern);
    let ending = path
        .extension()
        .map(|ending| format!(".{}", ending.to_string_lossy()))
        .unwrap_or_default();
    format!(
        "{}_{{slot}}{ending}",
        pattern.strip_suffix(&ending).unwrap_or(pattern)
    )
}

/// A port, with a slot if the port has slots.
type PortSlot = (String, Option<u32>);

/// The files of an instance.
#[derive(Default)]
struct SinkFiles {
    /// All files begun so far, each with the end whose messages the file keeps.
    begun: BTreeMap<PathBuf, (PortSlot, SinkFile)>,
    /// The current file of each end.
    current: BTreeMap<PortSlot, PathBuf>,
}

/// Why a port cannot write to a file.
#[derive(Debug)]
enum FileError {
    /// Another port writes to the file: the port's name and the file's.
    OfOtherPort(String, PathBuf),
    File(Error),
}

impl SinkFiles {
    /// Notes the current file of an end, and pauses the file before.
    fn turn_to(&mut self, end: &PortSlot, name: &Path) {
        if self.current.get(end).is_some_and(|current| current == name) {
            return;
        }
        let before = self.current.insert(end.clone(), name.to_owned());
        if let Some((_, target)) = before.and_then(|before| self.begun.get_mut(&before)) {
            target.pause();
        }
    }

    /// The file for the messages of an end. From use to use, an overlay of settings may name
    /// another file, and the first file again.
    fn target(
        &mut self,
        end: PortSlot,
        name: PathBuf,
        format: Format,
    ) -> Result<&mut SinkFile, FileError> {
        self.turn_to(&end, &name);
        let (owner, target) = match self.begun.entry(name) {
            Entry::Occupied(begun) => begun.into_mut(),
            Entry::Vacant(place) => {
                let target =
                    SinkFile::create(place.key().clone(), format).map_err(FileError::File)?;
                place.insert((end.clone(), target))
            }
        };
        if *owner == end {
            Ok(target)
        } else {
            Err(FileError::OfOtherPort(owner.0.clone(), target.name.clone()))
        }
    }
}

/// A file, or a series of files.
struct SinkFile {
    name: PathBuf,
    kind: SinkFileKind,
}

enum SinkFileKind {
    /// All messages in a single file.
    One(Box<dyn MessageWriter>),
    /// A file a message, and how many there are.
    Series(TimesWriter, u64),
}

impl SinkFile {
    fn create(name: PathBuf, format: Format) -> Result<Self> {
        if let Some(folder) = name
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            std::fs::create_dir_all(folder).on_file(folder, "create")?;
        }
        let kind = if has_step(&name.to_string_lossy()) {
            SinkFileKind::Series(
                TimesWriter::beside(&series_name(&name.to_string_lossy())),
                0,
            )
        } else {
            SinkFileKind::One(writer(&name, format))
        };
        Ok(SinkFile { name, kind })
    }

    fn write(&mut self, value: &View<'_>, meta: &MessageMeta) -> Result<()> {
        match &mut self.kind {
            SinkFileKind::One(writer) => writer.write(value, meta),
            SinkFileKind::Series(times, count) => {
                let file = step_file(&self.name.to_string_lossy(), *count);
                array_of(&file, value)?;
                // The time goes first. A file without a time could not be read; a time without a
                // file does no harm.
                times.write(meta.timestamp, meta.next)?;
                write_npy(&file, value)?;
                *count += 1;
                Ok(())
            }
        }
    }

    fn pause(&mut self) {
        match &mut self.kind {
            SinkFileKind::One(writer) => writer.pause(),
            SinkFileKind::Series(times, _) => times.pause(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{ReadOptions, open};
    use titin_runtime::{Dtype, Layout, StorageOrder};

    #[test]
    fn slots_get_files_of_their_own() {
        assert_eq!(with_slot("out/{port}.npy"), "out/{port}_{slot}.npy");
        assert_eq!(with_slot("result"), "result_{slot}");
    }

    #[test]
    fn coming_back_to_a_file_goes_on_in_it() {
        let folder = tempfile::tempdir().unwrap();
        for (ending, format) in [
            ("npy", Format::Npy),
            ("csv", Format::Csv),
            ("jsonl", Format::Lines),
        ] {
            let mut files = SinkFiles::default();
            let named = |name: &str| folder.path().join(format!("{name}.{ending}"));
            let layout = Layout::new(Dtype::UInt8, StorageOrder::C, []);
            for (step, name) in ["a", "b", "a", "b"].iter().enumerate() {
                let target = files
                    .target(("in".to_owned(), None), named(name), format)
                    .unwrap();
                let meta = MessageMeta {
                    timestamp: step as f64,
                    next: None,
                    settings: None,
                };
                target
                    .write(&View::Array(layout.clone(), &[step as u8]), &meta)
                    .unwrap();
            }
            let reading = ReadOptions {
                format,
                ..ReadOptions::default()
            };
            let mut reader = open(&named("a"), &reading).unwrap();
            let times: Vec<_> = std::iter::from_fn(|| reader.next().unwrap())
                .map(|r| r.timestamp)
                .collect();
            assert_eq!(times, [Some(0.0), Some(2.0)], "{ending}");
            let other = files
                .target(("other".to_owned(), None), named("a"), format)
                .err()
                .unwrap();
            assert!(matches!(other, FileError::OfOtherPort(owner, _) if owner == "in"));
        }
    }

    #[test]
    fn a_first_message_that_does_not_fit_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.npy", "a.csv", "s_{step}.npy"] {
            let name = folder.path().join(name);
            for file in [name.clone(), folder.path().join("a.times.csv")] {
                std::fs::write(file, "of the run before").unwrap();
            }
            let format = Format::of(&name).unwrap();
            let mut target = SinkFile::create(name.clone(), format).unwrap();
            let meta = MessageMeta {
                timestamp: 0.0,
                next: None,
                settings: None,
            };
            target.write(&View::List(Vec::new()), &meta).unwrap_err();
            for file in [name, folder.path().join("a.times.csv")] {
                assert_eq!(std::fs::read_to_string(file).unwrap(), "of the run before");
            }
            assert!(!folder.path().join("s.times.csv").exists());
        }
    }

    #[test]
    fn a_series_is_a_file_a_message_with_times_beside() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("deep/state_{step}.npy");
        let mut target = SinkFile::create(name, Format::Npy).unwrap();
        let layout = Layout::new(Dtype::UInt8, StorageOrder::C, [2]);
        for (step, shape) in [[1, 2], [3, 4]].iter().enumerate() {
            let meta = MessageMeta {
                timestamp: step as f64,
                next: None,
                settings: None,
            };
            target
                .write(&View::Array(layout.clone(), shape), &meta)
                .unwrap();
        }
        let times = std::fs::read_to_string(folder.path().join("deep/state.times.csv")).unwrap();
        assert_eq!(times, "timestamp,next_timestamp\n0.0,\n1.0,\n");
        let second = std::fs::read(folder.path().join("deep/state_000001.npy")).unwrap();
        assert!(second.ends_with(&[3, 4]));
    }
}
