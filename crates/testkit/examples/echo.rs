//! Answers arrays: what comes on port `in` goes out on port `out`.
//!
//! Tests run this program as a program of another release, with versions that the environment sets.

use std::error::Error;

use titin_runtime::{Instance, Options, Patience, Payload};

fn main() -> Result<(), Box<dyn Error>> {
    let instance = Instance::open(Options::default().ports("f_init: in; o_f: out")?)?;
    let (from, to) = (instance.port("in")?, instance.port("out")?);
    while instance.reuse()? {
        let message = instance.receive(from, None, Patience::Forever)?;
        let (layout, bytes) = message.array()?;
        let answer = Payload::array(layout, bytes);
        instance.send(to, None, &answer, message.timestamp, None, None)?;
    }
    Ok(instance.close()?)
}
