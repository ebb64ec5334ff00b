//! When a use comes to its end, by what the description says.

use titin_wire::settings::Setting;

use super::Instance;
use crate::sel::differs;
use crate::setting::SettingValue;
use crate::{Error, Kind, Result};

impl Instance {
    /// Whether the step that begins at this time would pass the end of the use.
    ///
    /// The use begins at the latest timestamp of its F_INIT messages, or at 0 without any. It lasts for the setting
    /// `t_max`, else for the scale `total`; a step takes the setting `dt`, else the scale `dt`, and no time if there is
    /// neither. Quantities with a unit, and scales, are converted to the unit of the timestamps
    /// ([`Instance::time_unit`]); a number alone is in that unit.
    ///
    /// # Errors
    /// [`Kind::Setting`] if the description does not say how long a use is, or `t_max` or `dt` is no time;
    /// [`Kind::CallOrder`] before the first reuse(), or while an F_INIT message was not received; [`Kind::Usage`] if the
    /// time is not a number.
    pub fn will_stop(&self, timestamp: f64) -> Result<bool> {
        let name = self.name();
        let wrong = |kind, why: &str| Err(Error::new(kind, format!("{name}: will_stop(): {why}")));
        if timestamp.is_nan() {
            return wrong(Kind::Usage, "the time given is not a number");
        }
        let begin = match self.inner.cycle().begin() {
            Ok(begin) => begin,
            Err(why) => return wrong(Kind::CallOrder, &why),
        };
        let scale = self.scale();
        let Some(total) = self.time("t_max", scale.and_then(|scale| scale.total))? else {
            let why = "no end is known; give this component a setting t_max in the description, or a scale `total` \
                       (titin: {scales: {NAME: {total: 10 s}}})";
            return wrong(Kind::Setting, why);
        };
        let step = self.time("dt", scale.and_then(|scale| scale.dt))?.unwrap_or(0.0);
        Ok(passes(timestamp, step, begin + total))
    }

    /// A time, by a setting or else by a scale.
    fn time(&self, name: &str, scale: Option<f64>) -> Result<Option<f64>> {
        let of_scale = || scale.map(|seconds| Setting::Str(format!("{seconds:e} s")));
        let value = self.find_setting(name).or_else(of_scale);
        value.map(|value| SettingValue { name: name.to_owned(), value }.in_unit(self.time_unit())).transpose()
    }
}

/// Whether a step from this time on ends after the end, or begins there if it takes no time.
fn passes(time: f64, step: f64, end: f64) -> bool {
    if step > 0.0 {
        time + step > end && differs(time + step, end, step)
    } else {
        time >= end || !differs(time, end, 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many steps from a time on there is room for, where times are sums of timesteps.
    fn steps_from(begin: f64, step: f64, total: f64) -> usize {
        let times = std::iter::successors(Some(begin), |time| Some(time + step));
        times.take_while(|time| !passes(*time, step, begin + total)).count()
    }

    fn steps(step: f64, total: f64) -> usize {
        steps_from(0.0, step, total)
    }

    #[test]
    fn as_many_steps_as_fit() {
        assert_eq!(steps(1.0, 10.0), 10);
        assert_eq!(steps(3.0, 10.0), 3);
        assert_eq!(steps(0.1, 40.0), 400, "though 400 sums of 0.1 are more than 40");
        assert_eq!(steps(0.7, 7.0), 10);
        assert_eq!(steps(20.0, 10.0), 0);
    }

    /// What is the same time depends on the timestep, and on the time: see [`differs`].
    #[test]
    fn sums_of_many_steps_and_short_steps_at_large_times_end_where_they_are_to() {
        let sum = (0..1_000_000).fold(0.0, |sum: f64, _| sum + 0.1);
        assert!(sum - 1e5 > 1e-6, "{sum}: more than the rounding of one operation");
        assert_eq!(steps(0.1, 1e5), 1_000_000);
        assert_eq!(steps(1e-3, 3600.0), 3_600_000);
        let now = 1.7e9;
        assert_eq!(steps_from(now, 1e-3, 1.0), 1000, "milliseconds since 1970");
        assert_eq!(steps_from(now, 1.0, 1e5), 100_000);
        assert!(!passes(now + 0.998, 1e-3, now + 1.0) && passes(now + 0.9995, 1e-3, now + 1.0));
        assert!(!passes(now + 0.999, 0.0, now + 1.0), "a millisecond before the end, where no step is known");
        assert!(passes(now + 1.0 - 2e-7, 0.0, now + 1.0), "the end but for rounding");
        assert_eq!(steps(3.0, 8.99), 2, "more than rounding is missing");
    }

    #[test]
    fn without_a_timestep_the_end_itself_counts() {
        let sum = (0..100).fold(0.0, |sum: f64, _| sum + 0.1);
        assert!(sum < 10.0 && passes(sum, 0.0, 10.0), "a sum of timesteps is rounded");
        assert!(!passes(1e300, 0.0, f64::INFINITY), "which may have no end");
        assert!(!passes(9.9, 0.0, 10.0) && passes(10.0, 0.0, 10.0) && passes(11.0, 0.0, 10.0));
    }
}
