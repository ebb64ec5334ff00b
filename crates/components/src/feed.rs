//! The messages of a source for a port: the records of the port's file, with their times.
//!
//! A feed keeps two records at most: the record to send, and the following record, for its time.

use std::path::PathBuf;

use crate::data::{MessageMeta, Value};
use crate::format::{FileRecord, NextTimestamp, ReadOptions, RecordPosition, RecordReader, open};
use crate::{Error, Result};

/// The settings of a feed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FeedPlan {
    pub(crate) file: PathBuf,
    pub(crate) reading: ReadOptions,
    /// Whether all records are steps of a single use. Otherwise each record belongs to a use of its
    /// own.
    pub(crate) steps: bool,
    /// Time from a record to the next record, if the file has no times.
    pub(crate) dt: Option<f64>,
    /// Time of the first record, if the file has no times; `None` for the time of the use.
    pub(crate) t0: Option<f64>,
    /// Records from time `t_max` on are left out.
    pub(crate) t_max: Option<f64>,
    pub(crate) repeat: Repeat,
    /// Length of one pass through the file.
    pub(crate) period: Option<f64>,
}

impl FeedPlan {
    /// Whether the feed has no last message.
    pub(crate) fn is_endless(&self) -> bool {
        self.repeat == Repeat::Endless && self.t_max.is_none()
    }
}

/// How often a file is gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    Times(u64),
    Endless,
}

/// A message ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FedMessage {
    pub(crate) value: Value,
    pub(crate) meta: MessageMeta,
}

/// Goes through a file.
pub(crate) struct Feed {
    plan: FeedPlan,
    /// Time of the use in which the feed began.
    origin: f64,
    reader: Box<dyn RecordReader>,
    pass: Pass,
    passes: u64,
    /// By how much the times of this pass are later than the times in the file.
    shift: f64,
    ahead: Option<TimedRecord>,
}

/// State of one pass through a file; times are the file's times.
#[derive(Debug, Clone, Copy, Default)]
struct Pass {
    count: u64,
    first: f64,
    before: f64,
    last: Option<f64>,
    next: Option<f64>,
}

impl Pass {
    /// Takes in a record, and the record's time in the file.
    fn take(&mut self, record: &FileRecord, time: Option<f64>) {
        if let Some(time) = time {
            self.first = if self.count == 0 { time } else { self.first };
            self.before = self.last.unwrap_or(time);
            self.last = Some(time);
        }
        self.next = match record.next {
            NextTimestamp::Known(next) => next,
            NextTimestamp::Follows => None,
        };
        self.count += 1;
    }
}

/// A record with the record's time, if there is a time.
struct TimedRecord {
    record: FileRecord,
    time: Option<f64>,
}

impl Feed {
    /// Opens the file. `now` is the time of the use.
    ///
    /// # Errors
    /// As the reader of the file.
    pub(crate) fn open(plan: FeedPlan, now: f64) -> Result<Self> {
        let reader = open(&plan.file, &plan.reading)?;
        Ok(Feed {
            plan,
            origin: now,
            reader,
            pass: Pass::default(),
            passes: 1,
            shift: 0.0,
            ahead: None,
        })
    }

    /// The settings that the feed was made from.
    pub(crate) fn plan(&self) -> &FeedPlan {
        &self.plan
    }

    /// The next message. A record without a time gets `now`, the time of the use.
    ///
    /// # Errors
    /// As the reader of the file; if times fall within a pass, or a step has no time.
    pub(crate) fn next(&mut self, now: f64) -> Result<Option<FedMessage>> {
        let current = match self.ahead.take() {
            Some(ahead) => Some(ahead),
            None => self.pull()?,
        };
        let Some(TimedRecord { record, time }) = current else {
            return Ok(None);
        };
        let timestamp = time.unwrap_or(now);
        if self.late(timestamp) {
            return Ok(None);
        }
        let next = self.next_timestamp(&record)?;
        let next = next.filter(|next| !self.late(*next));
        if next.is_some_and(|next| next < timestamp) {
            return Err(self.wrong(
                record.place,
                format!("its next timestamp is before its own, {timestamp:?}"),
            ));
        }
        Ok(Some(FedMessage {
            value: record.value,
            meta: MessageMeta {
                timestamp,
                next,
                settings: record.settings,
            },
        }))
    }

    /// The next timestamp of a record, as the file says, or else the time of the record that
    /// follows.
    fn next_timestamp(&mut self, record: &FileRecord) -> Result<Option<f64>> {
        match record.next {
            NextTimestamp::Known(Some(next)) => Ok(Some(next + self.shift)),
            NextTimestamp::Known(None) if !self.begins_again() => Ok(None),
            _ => {
                self.ahead = self.pull()?;
                Ok(self.ahead.as_ref().and_then(|ahead| ahead.time))
            }
        }
    }

    fn late(&self, time: f64) -> bool {
        self.plan.t_max.is_some_and(|t_max| time >= t_max)
    }

    fn begins_again(&self) -> bool {
        match self.plan.repeat {
            Repeat::Endless => true,
            Repeat::Times(times) => self.passes < times,
        }
    }

    /// The next record of the file. A repeated file begins again after the last record.
    fn pull(&mut self) -> Result<Option<TimedRecord>> {
        loop {
            if let Some(record) = self.reader.next()? {
                let time = self.time_of(&record)?;
                return Ok(Some(TimedRecord { record, time }));
            }
            if self.pass.count == 0 {
                return Err(Error::file(&self.plan.file, "there is no message in it"));
            }
            if !self.begins_again() {
                return Ok(None);
            }
            self.begin_again()?;
        }
    }

    /// Begins another pass through the file.
    fn begin_again(&mut self) -> Result<()> {
        if self.pass.last.is_some() {
            let (before, period) = (self.shift, self.period()?);
            self.shift += period;
            // For uses, the caller decides how many messages the feed sends. Steps would go on for
            // ever.
            let gets_on = self.shift > before;
            if self.plan.steps && !gets_on {
                let why = format!(
                    "it is to be repeated, but one time through it takes {period:?} s, so its times would stay where \
                     they are; set `period` to how long that is"
                );
                return Err(Error::file(&self.plan.file, why));
            }
        }
        self.passes += 1;
        self.pass = Pass::default();
        self.reader = open(&self.plan.file, &self.plan.reading)?;
        Ok(())
    }

    /// The time of a record that was just read, if there is a time.
    fn time_of(&mut self, record: &FileRecord) -> Result<Option<f64>> {
        let FeedPlan { dt, t0, .. } = &self.plan;
        let count = self.pass.count;
        let counted = || dt.map(|dt| t0.unwrap_or(self.origin) + count as f64 * dt);
        let alone = || t0.filter(|_| count == 0);
        let time = record.timestamp.or_else(counted).or_else(alone);
        if let Some(why) = self.wrong_time(time) {
            return Err(self.wrong(record.place, why));
        }
        self.pass.take(record, time);
        Ok(time.map(|time| time + self.shift))
    }

    /// Why the next record of the pass cannot have a time.
    fn wrong_time(&self, time: Option<f64>) -> Option<String> {
        let (steps, pass) = (self.plan.steps, &self.pass);
        match (time, pass.last) {
            (Some(time), _) if time.is_nan() => Some("its time is no number".to_owned()),
            (None, _) if steps && pass.count > 0 => Some(
                "it has no time, and a step needs one: set `dt`, or give the file times".to_owned(),
            ),
            (Some(time), Some(last)) if steps && time < last => Some(format!(
                "its time is {time:?}, after {last:?}; times must not fall"
            )),
            _ => None,
        }
    }

    /// How long a pass takes: as set, else until the end of the last step. The last step is taken
    /// to be as long as the step before.
    fn period(&self) -> Result<f64> {
        let Pass {
            count,
            first,
            before,
            last,
            next,
        } = self.pass;
        let last = last.unwrap_or(first);
        let step = (count > 1).then_some(last - before).or(self.plan.dt);
        let found = next
            .map(|next| next - first)
            .or(step.map(|step| last - first + step));
        self.plan.period.or(found).ok_or_else(|| {
            Error::file(
                &self.plan.file,
                "it is to be repeated, but holds one message; set `period` to say after how long",
            )
        })
    }

    fn wrong(&self, place: RecordPosition, why: String) -> Error {
        match place {
            RecordPosition::Line(line) => Error::line(&self.plan.file, line, why),
            RecordPosition::Step(step) => {
                Error::file(&self.plan.file, format!("step {step}: {why}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use std::fs;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn with(name: &str, text: &str) -> (Folder, FeedPlan) {
            let folder = Folder(tempfile::tempdir().unwrap());
            let file = folder.0.path().join(name);
            fs::write(&file, text).unwrap();
            let plan = FeedPlan {
                reading: ReadOptions {
                    format: Format::of(&file).unwrap(),
                    ..ReadOptions::default()
                },
                file,
                steps: true,
                dt: None,
                t0: None,
                t_max: None,
                repeat: Repeat::Times(1),
                period: None,
            };
            (folder, plan)
        }
    }

    fn times(plan: FeedPlan) -> Result<Vec<(f64, Option<f64>)>> {
        let mut feed = Feed::open(plan, 5.0)?;
        let mut times = Vec::new();
        while let Some(fed) = feed.next(5.0)? {
            times.push((fed.meta.timestamp, fed.meta.next));
        }
        Ok(times)
    }

    const RAIN: &str = "time,rain\n0,1\n10,2\n30,3\n";

    #[test]
    fn each_record_says_when_the_next_one_comes() {
        let (_folder, plan) = Folder::with("rain.csv", RAIN);
        assert_eq!(
            times(plan.clone()).unwrap(),
            [(0.0, Some(10.0)), (10.0, Some(30.0)), (30.0, None)]
        );
        let cut = FeedPlan {
            t_max: Some(30.0),
            ..plan
        };
        assert_eq!(times(cut).unwrap(), [(0.0, Some(10.0)), (10.0, None)]);
    }

    #[test]
    fn what_is_repeated_must_get_on() {
        let (_folder, plan) = Folder::with("rain.csv", RAIN);
        let plan = FeedPlan {
            repeat: Repeat::Endless,
            t_max: Some(100.0),
            ..plan
        };
        for period in [0.0, -1.0] {
            let error = times(FeedPlan {
                period: Some(period),
                ..plan.clone()
            })
            .unwrap_err()
            .to_string();
            assert!(
                error.contains("rain.csv: it is to be repeated") && error.contains("`period`"),
                "{error}"
            );
        }
        let (_folder, still) = Folder::with("still.csv", "time,rain\n3,1\n3,2\n");
        let still = FeedPlan {
            repeat: Repeat::Endless,
            t_max: Some(100.0),
            ..still
        };
        let error = times(still.clone()).unwrap_err().to_string();
        assert!(error.contains("one time through it takes 0.0 s"), "{error}");
        // What is sent by uses may have one time: the uses come to an end.
        let mut by_use = Feed::open(
            FeedPlan {
                steps: false,
                ..still
            },
            3.0,
        )
        .unwrap();
        assert!((0..5).all(|_| {
            by_use
                .next(3.0)
                .unwrap()
                .is_some_and(|fed| fed.meta.timestamp == 3.0)
        }));
    }

    #[test]
    fn records_without_times_are_counted() {
        let (_folder, plan) = Folder::with("rain.csv", "rain\n1\n2\n");
        let by_use = FeedPlan {
            dt: Some(0.5),
            ..plan.clone()
        };
        assert_eq!(times(by_use).unwrap(), [(5.0, Some(5.5)), (5.5, None)]);
        let by_t0 = FeedPlan {
            dt: Some(0.5),
            t0: Some(1.0),
            ..plan.clone()
        };
        assert_eq!(times(by_t0).unwrap(), [(1.0, Some(1.5)), (1.5, None)]);
        let error = times(plan).unwrap_err().to_string();
        assert!(
            error.contains("rain.csv:3: it has no time") && error.contains("`dt`"),
            "{error}"
        );
    }

    #[test]
    fn a_use_gives_its_time_to_records_without() {
        let (_folder, plan) = Folder::with("rain.csv", "rain\n1\n2\n");
        let mut feed = Feed::open(
            FeedPlan {
                steps: false,
                ..plan
            },
            5.0,
        )
        .unwrap();
        assert_eq!(feed.next(5.0).unwrap().unwrap().meta.timestamp, 5.0);
        assert_eq!(feed.next(7.0).unwrap().unwrap().meta.timestamp, 7.0);
        assert_eq!(feed.next(9.0).unwrap(), None);
    }

    #[test]
    fn repetition_moves_times_on() {
        let (_folder, plan) = Folder::with("rain.csv", RAIN);
        let twice = FeedPlan {
            repeat: Repeat::Times(2),
            ..plan.clone()
        };
        let expected = [0.0, 10.0, 30.0, 50.0, 60.0, 80.0];
        let found: Vec<f64> = times(twice.clone())
            .unwrap()
            .iter()
            .map(|(time, _)| *time)
            .collect();
        assert_eq!(found, expected);
        assert_eq!(times(twice.clone()).unwrap()[2].1, Some(50.0));
        let daily = FeedPlan {
            period: Some(100.0),
            ..twice
        };
        assert_eq!(times(daily).unwrap()[3], (100.0, Some(110.0)));
        let endless = FeedPlan {
            repeat: Repeat::Endless,
            t_max: Some(55.0),
            ..plan
        };
        assert_eq!(times(endless).unwrap().last(), Some(&(50.0, None)));
    }

    #[test]
    fn a_recorded_end_is_no_end_when_the_file_is_repeated() {
        let text = "timestamp,next_timestamp,value\n0.0,1.0,7\n1.0,,8\n";
        let (_folder, plan) = Folder::with("a.csv", text);
        assert_eq!(
            times(plan.clone()).unwrap(),
            [(0.0, Some(1.0)), (1.0, None)]
        );
        let twice = FeedPlan {
            repeat: Repeat::Times(2),
            ..plan
        };
        let expected = [
            (0.0, Some(1.0)),
            (1.0, Some(2.0)),
            (2.0, Some(3.0)),
            (3.0, None),
        ];
        assert_eq!(times(twice).unwrap(), expected);
    }

    #[test]
    fn wrong_times_are_named() {
        let why = |text: &str| {
            let (_folder, plan) = Folder::with("rain.csv", text);
            times(plan).unwrap_err().to_string()
        };
        assert!(why("t,a\n1,1\n0,1\n").contains("rain.csv:3: its time is 0.0, after 1.0"));
        assert!(why("t,a\nnan,1\n").contains("rain.csv:2: its time is no number"));
        assert!(why("t,a\n").contains("there is no message in it"));
        assert!(
            why("t,next_timestamp,a\n5,1,0\n")
                .contains("rain.csv:2: its next timestamp is before its own, 5.0")
        );
        let (_folder, plan) = Folder::with("one.csv", "t,a\n1,1\n");
        let error = times(FeedPlan {
            repeat: Repeat::Endless,
            ..plan
        })
        .unwrap_err()
        .to_string();
        assert!(error.contains("set `period`"), "{error}");
    }
}
