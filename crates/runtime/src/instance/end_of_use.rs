//! When a use comes to an end, by the description.

use titin_wire::settings::Setting;

use super::Instance;
use crate::setting::SettingValue;
use crate::{Error, Kind, Result};

impl Instance {
    /// Whether the step that begins at the given time would pass the end of the use.
    ///
    /// The use begins at the latest timestamp of its F_INIT messages, or at 0 without F_INIT
    /// messages. The use lasts for the setting `t_max`, else for the scale `total`. A step takes
    /// the setting `dt`, else the scale `dt`, and no time if there is neither. Quantities with a
    /// unit, and scales, are converted to the unit of the timestamps ([`Instance::time_unit`]); a
    /// number without a unit is in the unit of the timestamps.
    ///
    /// # Errors
    /// [`Kind::Setting`] if the description does not say how long a use is, or `t_max` or `dt` is
    /// no time, or negative; [`Kind::CallOrder`] before the first reuse(), or while an F_INIT
    /// message was not received; [`Kind::Usage`] if the time is not a number, or so large that a
    /// step does not change the time.
    pub fn will_stop(&self, timestamp: f64) -> Result<bool> {
        let name = self.name();
        let wrong = |kind, why: &str| Err(Error::new(kind, format!("{name}: will_stop(): {why}")));
        if timestamp.is_nan() {
            return wrong(Kind::Usage, "the time given is not a number");
        }
        let begin = match self.serial.execution_loop().begin() {
            Ok(begin) => begin,
            Err(why) => return wrong(Kind::CallOrder, &why.to_string()),
        };
        let scale = self.scale();
        let Some(total) = self.time("t_max", scale.and_then(|scale| scale.total))? else {
            let why = "no end is known; give this component a setting t_max in the description, or a scale `total` \
                       (titin: {scales: {NAME: {total: 10 s}}})";
            return wrong(Kind::Setting, why);
        };
        let step = self
            .time("dt", scale.and_then(|scale| scale.dt))?
            .unwrap_or(0.0);
        let stops = passes(begin, timestamp, step, total);
        if !stops && step > 0.0 && timestamp + step == timestamp {
            return wrong(Kind::Usage, &standstill(timestamp, step));
        }
        Ok(stops)
    }

    /// A time, by a setting or else by a scale.
    fn time(&self, name: &str, scale: Option<f64>) -> Result<Option<f64>> {
        let of_scale = || scale.map(|seconds| Setting::Str(format!("{seconds:e} s")));
        let value = self.find_setting(name).or_else(of_scale);
        let Some(value) = value else { return Ok(None) };
        let value = SettingValue {
            name: name.to_owned(),
            value,
        };
        let time = value.in_unit(self.time_unit())?;
        if let Some(what) = fault(name, time) {
            let text = format!(
                "{}: will_stop(): setting '{name}' is {}, which is {what}: correct it in the description",
                self.name(),
                value.value()
            );
            return Err(Error::new(Kind::Setting, text));
        }
        Ok(Some(time))
    }
}

/// Why the steps of a use could not end by the given time, if there is a reason.
fn fault(name: &str, time: f64) -> Option<&'static str> {
    match time {
        _ if time.is_nan() => Some("not a number"),
        _ if time < 0.0 => Some("a time below 0"),
        // A use may have no end, but each step has an end.
        _ if time.is_infinite() && name == "dt" => Some("no time that a step can take"),
        _ => None,
    }
}

#[cold]
fn standstill(timestamp: f64, step: f64) -> String {
    format!(
        "a step of {step:?} from {timestamp:?} does not change the time, which is too large for so short a step, so the steps would \
         never end: count time from a later begin, or in a larger unit"
    )
}

/// Whether a step from the given time on ends after the end of a use, or begins there if the step
/// takes no time. A step may pass the end by a millionth of the step, and by the possible rounding
/// of the times before the step. Each sum of a timestep rounds to the next number, and such numbers
/// are far apart where the use begins late.
fn passes(begin: f64, timestamp: f64, step: f64, total: f64) -> bool {
    let elapsed = timestamp - begin;
    let rounding = f64::EPSILON * timestamp.abs().max(begin.abs());
    if step > 0.0 {
        let steps = (elapsed / step).abs().max(1.0);
        elapsed + step - total > (1e-6 * step + steps * rounding).min(step / 2.0)
    } else {
        total - elapsed <= 1e-9 * elapsed.abs() + rounding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(step: f64, total: f64) -> usize {
        steps_from(0.0, step, total)
    }

    /// The number of steps from a given time to the end of a use. The times are sums of timesteps,
    /// or multiples of a timestep.
    fn steps_from(begin: f64, step: f64, total: f64) -> usize {
        let sums = std::iter::successors(Some(begin), |time| Some(time + step));
        let summed = sums
            .take_while(|time| !passes(begin, *time, step, total))
            .count();
        let products = (0..).map(|count| begin + f64::from(count) * step);
        let multiplied = products
            .take_while(|time| !passes(begin, *time, step, total))
            .count();
        assert_eq!(summed, multiplied, "from {begin}, {step} to {total}");
        summed
    }

    #[test]
    fn times_by_which_steps_would_not_end_are_refused() {
        for name in ["t_max", "dt"] {
            assert_eq!(fault(name, f64::NAN), Some("not a number"));
            assert_eq!(fault(name, -1.0), Some("a time below 0"));
            assert_eq!(fault(name, f64::NEG_INFINITY), Some("a time below 0"));
            assert_eq!(fault(name, 0.0), None);
        }
        assert_eq!(fault("t_max", f64::INFINITY), None);
        assert!(fault("dt", f64::INFINITY).is_some());
    }

    #[test]
    fn as_many_steps_as_fit() {
        assert_eq!(steps(1.0, 10.0), 10);
        assert_eq!(steps(3.0, 10.0), 3);
        assert_eq!(steps(3.0, 8.99), 2, "more than rounding is missing");
        assert_eq!(
            steps(0.1, 40.0),
            400,
            "though 400 sums of 0.1 are more than 40"
        );
        assert_eq!(steps(0.7, 7.0), 10);
        assert_eq!(steps(20.0, 10.0), 0);
    }

    #[test]
    fn sums_of_many_steps_end_where_they_are_to() {
        let sum = (0..1_000_000).fold(0.0, |sum: f64, _| sum + 0.1);
        assert!(
            sum - 1e5 > 1e-6,
            "{sum}: more than the rounding of one operation"
        );
        assert_eq!(steps(0.1, 1e5), 1_000_000);
        assert_eq!(steps(1e-3, 3600.0), 3_600_000);
        assert_eq!(steps_from(3e6, 0.001, 10.0), 10_000);
    }

    #[test]
    fn a_late_begin_loses_no_step_and_adds_none() {
        for begin in [0.0, 1.0, -1e3, 3e6, 17.28e6, 1.7e9, 1e12] {
            assert_eq!(steps_from(begin, 0.125, 1.0), 8, "exact");
            assert_eq!(steps_from(begin, 3600.0, 86400.0), 24);
            assert_eq!(steps_from(begin, 3600.0, 86399.0), 23);
            if begin < 1e10 {
                assert_eq!(steps_from(begin, 0.1, 1.0), 10);
                assert_eq!(steps_from(begin, 0.01, 0.1), 10);
                assert_eq!(steps_from(begin, 0.01, 0.099), 9);
            }
            if begin < 1e7 {
                assert_eq!(steps_from(begin, 0.001, 0.01), 10);
            }
        }
        let now = 1.7e9;
        assert_eq!(steps_from(now, 1e-3, 1.0), 1000, "milliseconds since 1970");
        assert_eq!(steps_from(now, 1.0, 1e5), 100_000);
        assert!(!passes(now, now + 0.998, 1e-3, 1.0) && passes(now, now + 0.9995, 1e-3, 1.0));
    }

    #[test]
    fn without_a_timestep_the_end_itself_counts() {
        let sum = (0..100).fold(0.0, |sum: f64, _| sum + 0.1);
        assert!(
            sum < 10.0 && passes(0.0, sum, 0.0, 10.0),
            "a sum of timesteps is rounded"
        );
        assert!(
            !passes(0.0, 1e300, 0.0, f64::INFINITY),
            "which may have no end"
        );
        assert!(
            !passes(0.0, 9.9, 0.0, 10.0)
                && passes(0.0, 10.0, 0.0, 10.0)
                && passes(0.0, 11.0, 0.0, 10.0)
        );
        let now = 1.7e9;
        assert!(
            !passes(now, now + 0.999, 0.0, 1.0),
            "a millisecond before the end"
        );
        assert!(
            passes(now, now + 1.0 - 2e-7, 0.0, 1.0),
            "the end but for rounding"
        );
    }
}
