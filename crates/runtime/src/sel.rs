//! The submodel execution loop, and whether calls keep to it.
//!
//! One use of a submodel is F_INIT, then O_I and S in turn any number of times, then O_F (Borgdorff et al., 2013,
//! "Foundations of distributed multiscale computing"). [`Loop`] follows the calls of one instance and refuses, in
//! these terms, what contradicts it. It knows no messages and no sockets.

use std::collections::HashMap;

use titin_model::Operator;

/// A port's connected end, as the loop counts it: port number and slot.
type End = (usize, u32);

/// The state of one instance in its loop.
#[derive(Debug, Default)]
pub(crate) struct Loop {
    checked: bool,
    phase: Option<Operator>,
    used: bool,
    /// Connected F_INIT ends not received in this use, with their port's name.
    waiting: Vec<(End, String)>,
    /// Latest timestamp of each end in this use.
    stamps: HashMap<End, f64>,
    /// Latest timestamp of all ends in this use.
    now: Option<f64>,
}

/// A call on a port.
pub(crate) struct Call<'a> {
    pub(crate) port: &'a str,
    pub(crate) end: End,
    pub(crate) operator: Operator,
    pub(crate) timestamp: f64,
}

impl Loop {
    pub(crate) fn new(checked: bool) -> Self {
        Loop { checked, ..Loop::default() }
    }

    pub(crate) fn checked(&self) -> bool {
        self.checked
    }

    pub(crate) fn uncheck(&mut self) {
        self.checked = false;
    }

    /// The latest simulated time that this use has seen.
    pub(crate) fn now(&self) -> Option<f64> {
        self.now
    }

    /// Whether [`Loop::reuse`] was ever called.
    pub(crate) fn used(&self) -> bool {
        self.used
    }

    /// A new use begins: `f_init` are the connected F_INIT ends.
    pub(crate) fn reuse(&mut self, f_init: Vec<(End, String)>) {
        self.used = true;
        self.phase = None;
        self.waiting = f_init;
        self.stamps.clear();
        self.now = None;
    }

    /// F_INIT ends whose message was not taken in the use that ends now.
    pub(crate) fn untaken(&self) -> Option<String> {
        let (_, port) = self.waiting.first().filter(|_| self.checked && self.used)?;
        Some(format!(
            "the message on F_INIT port '{port}' was not taken in this use; receive it before O_I, S and O_F, in every use"
        ))
    }

    /// A message is about to be sent or was just taken.
    pub(crate) fn call(&mut self, call: &Call<'_>) -> Result<(), String> {
        // In any order: nothing that looks at time can go on from it.
        if call.timestamp.is_nan() {
            return Err(format!("the timestamp on {} port '{}' is not a number", call.operator, call.port));
        }
        if self.checked {
            self.order(call)?;
            self.time(call)?;
        }
        if call.operator == Operator::FInit {
            self.waiting.retain(|(end, _)| *end != call.end);
        }
        self.phase = self
            .phase
            .max(Some(call.operator))
            .filter(|_| call.operator != Operator::OI)
            .or(Some(call.operator));
        self.stamps.insert(call.end, call.timestamp);
        self.now = Some(self.now.map_or(call.timestamp, |now| now.max(call.timestamp)));
        Ok(())
    }

    fn order(&self, call: &Call<'_>) -> Result<(), String> {
        let Call { port, operator, .. } = call;
        let what = if operator.sends() { "send on" } else { "receive on" };
        let wrong = |why: &str, todo: &str| Err(format!("{what} {operator} port '{port}' {why}; {todo}"));
        if !self.used {
            return wrong(
                "before the first reuse()",
                "call reuse() at the beginning of every use, as in `while instance.reuse()`",
            );
        }
        match (operator, self.phase) {
            (Operator::FInit, Some(phase)) if phase != Operator::FInit => {
                wrong(&format!("after {phase}"), "F_INIT comes first: call reuse() to begin the next use")
            }
            (Operator::OI | Operator::S, Some(Operator::OF)) => {
                wrong("after O_F", "O_F ends a use: call reuse() to begin the next one")
            }
            (Operator::FInit, _) => Ok(()),
            _ => match self.waiting.first() {
                Some((_, missing)) => wrong(
                    &format!("before F_INIT port '{missing}' was received"),
                    "receive all connected F_INIT ports first",
                ),
                None => Ok(()),
            },
        }
    }

    fn time(&self, call: &Call<'_>) -> Result<(), String> {
        let Call { port, operator, end, timestamp } = call;
        match self.stamps.get(end) {
            Some(last) if timestamp < last => Err(format!(
                "the timestamp on {operator} port '{port}' runs backwards: {timestamp:?} after {last:?}; within one use each port's timestamps must not fall"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN: (usize, u32) = (0, 0);

    fn call(operator: Operator, timestamp: f64) -> Call<'static> {
        let port = match operator {
            Operator::FInit => "init",
            Operator::OI => "out",
            Operator::S => "in",
            Operator::OF => "final",
        };
        Call { port, end: (operator as usize, 0), operator, timestamp }
    }

    fn begun() -> Loop {
        let mut cycle = Loop::new(true);
        cycle.reuse(vec![(IN, "init".into())]);
        cycle
    }

    #[test]
    fn the_loop_is_accepted_in_its_order() {
        let mut cycle = begun();
        for _ in 0..2 {
            cycle.call(&call(Operator::FInit, 0.0)).unwrap();
            for step in 0..3 {
                cycle.call(&call(Operator::OI, step.into())).unwrap();
                cycle.call(&call(Operator::S, step.into())).unwrap();
            }
            cycle.call(&call(Operator::OF, 3.0)).unwrap();
            assert_eq!(cycle.now(), Some(3.0));
            assert_eq!(cycle.untaken(), None);
            cycle.reuse(vec![(IN, "init".into())]);
        }
        assert!(cycle.untaken().unwrap().contains("'init'"));
    }

    #[test]
    fn calls_out_of_order_are_explained() {
        let before = Loop::new(true).call(&call(Operator::OI, 0.0)).unwrap_err();
        assert!(before.contains("before the first reuse()"), "{before}");

        let mut cycle = begun();
        let early = cycle.call(&call(Operator::OI, 0.0)).unwrap_err();
        assert!(early.contains("O_I port 'out'") && early.contains("F_INIT port 'init'"), "{early}");
        cycle.call(&call(Operator::FInit, 0.0)).unwrap();
        cycle.call(&call(Operator::OI, 0.0)).unwrap();
        let late = cycle.call(&call(Operator::FInit, 0.0)).unwrap_err();
        assert!(late.contains("after O_I") && late.contains("reuse()"), "{late}");
        cycle.call(&call(Operator::OF, 0.0)).unwrap();
        let over = cycle.call(&call(Operator::S, 0.0)).unwrap_err();
        assert!(over.contains("S port 'in' after O_F"), "{over}");
    }

    #[test]
    fn time_does_not_run_backwards_within_a_use() {
        let mut cycle = begun();
        cycle.call(&call(Operator::FInit, 5.0)).unwrap();
        cycle.call(&call(Operator::OI, 6.0)).unwrap();
        let back = cycle.call(&call(Operator::OI, 5.5)).unwrap_err();
        assert!(back.contains("5.5 after 6.0"), "{back}");
        assert!(cycle.call(&call(Operator::OI, f64::NAN)).is_err());
        cycle.reuse(vec![(IN, "init".into())]);
        cycle.call(&call(Operator::FInit, 0.0)).unwrap();
    }

    #[test]
    fn only_what_is_no_time_is_refused_when_the_check_is_off() {
        let mut cycle = Loop::new(false);
        cycle.call(&call(Operator::OF, 1.0)).unwrap();
        cycle.call(&call(Operator::FInit, 0.0)).unwrap();
        assert_eq!(cycle.untaken(), None);
        let not_a_number = cycle.call(&call(Operator::OI, f64::NAN)).unwrap_err();
        assert!(not_a_number.contains("O_I port 'out' is not a number"), "{not_a_number}");
    }
}
