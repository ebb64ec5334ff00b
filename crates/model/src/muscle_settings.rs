//! The settings of MUSCLE3, `muscle_...`, and their effect in titin; and `muscle_checks`, a setting of
//! titin beside them.

use std::time::Duration;

use crate::names::InstanceName;
use crate::settings::{Setting, Settings};

/// The values of MUSCLE3's settings for an instance. A value that cannot be read counts as missing,
/// as in MUSCLE3; `titin check` warns of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MuscleSettings {
    /// Log records below this level, as in Python's `logging`, are not sent to the run's log.
    pub log_level: u8,
    /// The length of a wait after which the manager looks for a cycle; `None` leaves waits of this
    /// instance out.
    pub patience: Option<Duration>,
    /// Whether the instance sends event rows; `None` leaves the choice to the run. With `false` the
    /// instance counts nothing either.
    pub trace: Option<bool>,
    /// What becomes of calls out of order; `None` leaves the choice to the program.
    pub checks: Option<Checks>,
}

/// What becomes of a call that is out of the order of the execution loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Checks {
    /// The call is refused.
    #[default]
    Error,
    /// The call goes on. The run's log names each kind of violation once for each port.
    Warn,
    /// The call goes on, and nothing is said.
    Off,
}

const CHECKS: &str = "muscle_checks";
const LOG_LEVEL: &str = "muscle_remote_log_level";
const TIMEOUT: &str = "muscle_deadlock_receive_timeout";
const PROFILE: &str = "muscle_profile_level";

/// Names, and for settings without effect the reason.
pub(crate) const NAMES: [(&str, Option<&str>); 6] = [
    (CHECKS, None),
    (TIMEOUT, None),
    // Read by the `libmuscle` of programs that were written for MUSCLE3.
    ("muscle_local_log_level", None),
    (PROFILE, None),
    (LOG_LEVEL, None),
    (
        "muscle_snapshot_directory",
        Some("titin takes no snapshots yet"),
    ),
];

/// Levels of log records, under MUSCLE3's names.
const LEVELS: [(&str, u8); 6] = [
    ("debug", 10),
    ("info", 20),
    ("warning", 30),
    ("error", 40),
    ("critical", 50),
    ("disable", u8::MAX),
];

/// The shortest wait that is reported.
const SHORTEST: Duration = Duration::from_millis(100);

impl MuscleSettings {
    /// The settings of an instance.
    pub fn of(settings: &Settings, instance: &InstanceName) -> MuscleSettings {
        let find = |name: &str| settings.find(instance, name);
        MuscleSettings {
            log_level: find(LOG_LEVEL).and_then(log_level).unwrap_or_default(),
            patience: find(TIMEOUT).and_then(timeout).unwrap_or(Some(SHORTEST)),
            trace: find(PROFILE).and_then(trace),
            checks: find(CHECKS).and_then(checks),
        }
    }
}

/// The values that the setting of this name accepts, in words, if the setting does not accept
/// `value`.
pub(crate) fn wanted(name: &str, value: &Setting) -> Option<String> {
    let (fits, wanted) = match name {
        LOG_LEVEL => {
            let levels = crate::problem::either(LEVELS.map(|(name, _)| name));
            (log_level(value).is_some(), levels)
        }
        TIMEOUT => (
            timeout(value).is_some(),
            "a number of seconds, below 0 for never".to_string(),
        ),
        PROFILE => (trace(value).is_some(), "\"all\" or \"none\"".to_string()),
        CHECKS => (
            checks(value).is_some(),
            "\"strict\", \"warn\" or \"off\"".to_string(),
        ),
        _ => return None,
    };
    (!fits).then_some(wanted)
}

fn log_level(value: &Setting) -> Option<u8> {
    let Setting::Str(word) = value else {
        return None;
    };
    LEVELS
        .iter()
        .find(|(name, _)| word.eq_ignore_ascii_case(name))
        .map(|(_, level)| *level)
}

fn timeout(value: &Setting) -> Option<Option<Duration>> {
    let seconds = value
        .in_unit("s")
        .ok()
        .filter(|seconds| !seconds.is_nan())?;
    if seconds < 0.0 {
        return Some(None);
    }
    // A duration too long for `Duration` means never.
    Some(
        Duration::try_from_secs_f64(seconds)
            .ok()
            .map(|time| time.max(SHORTEST)),
    )
}

fn trace(value: &Setting) -> Option<bool> {
    match value {
        Setting::Str(word) if word == "all" => Some(true),
        Setting::Str(word) if word == "none" => Some(false),
        _ => None,
    }
}

fn checks(value: &Setting) -> Option<Checks> {
    match value {
        Setting::Str(word) if word == "strict" => Some(Checks::Error),
        Setting::Str(word) if word == "warn" => Some(Checks::Warn),
        Setting::Str(word) if word == "off" => Some(Checks::Off),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn habits(settings: &[(&str, Setting)]) -> MuscleSettings {
        let settings = settings
            .iter()
            .map(|(path, value)| ((*path).into(), value.clone()))
            .collect();
        MuscleSettings::of(&settings, &"a.b[1]".parse().unwrap())
    }

    #[test]
    fn settings_are_those_of_the_instance() {
        let none = MuscleSettings {
            log_level: 0,
            patience: Some(SHORTEST),
            trace: None,
            checks: None,
        };
        assert_eq!(habits(&[]), none);
        let text = |text: &str| Setting::Str(text.into());
        let given = habits(&[
            ("muscle_remote_log_level", text("ERROR")),
            ("a.muscle_deadlock_receive_timeout", Setting::Float(2.5)),
            ("a.b[1].muscle_profile_level", text("none")),
            ("muscle_checks", text("strict")),
            ("b.muscle_checks", text("off")),
            ("a.muscle_checks", text("warn")),
        ]);
        let patience = Some(Duration::from_millis(2500));
        assert_eq!(
            given,
            MuscleSettings {
                log_level: 40,
                patience,
                trace: Some(false),
                checks: Some(Checks::Warn),
            }
        );
        let odd = [
            ("muscle_remote_log_level", text("loud")),
            ("muscle_profile_level", Setting::Bool(true)),
            ("muscle_checks", text("error")),
        ];
        assert_eq!(habits(&odd), none);
    }

    #[test]
    fn a_deadlock_is_looked_for_after_a_while_or_never() {
        let patience = |value| habits(&[("muscle_deadlock_receive_timeout", value)]).patience;
        assert_eq!(patience(Setting::Int(-1)), None);
        assert_eq!(patience(Setting::Int(0)), Some(SHORTEST));
        assert_eq!(
            patience(Setting::Str("1 min".into())),
            Some(Duration::from_secs(60))
        );
        assert_eq!(patience(Setting::Float(f64::INFINITY)), None);
        assert_eq!(patience(Setting::Float(f64::NAN)), Some(SHORTEST));
    }
}
