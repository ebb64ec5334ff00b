//! Sends what no call of titin makes: the bytes of each file named, as the structure of a message on port `out`.
//!
//! For tests of what receivers in every language make of malformed data.

use std::error::Error;

use titin_runtime::structure::{Encoded, EncodedPart};
use titin_runtime::{Instance, Options, Payload};

fn main() -> Result<(), Box<dyn Error>> {
    let instance = Instance::open(Options::default().ports("o_i: out")?)?;
    let out = instance.port("out")?;
    instance.reuse()?;
    for (number, file) in std::env::args().skip(1).enumerate() {
        let bytes = std::fs::read(file)?;
        let length = bytes.len() as u64;
        let forged = Encoded {
            parts: vec![EncodedPart::Owned(bytes)],
            length,
        };
        instance.send(
            out,
            None,
            &Payload::structure(&forged),
            number as f64,
            None,
            None,
        )?;
    }
    instance.reuse()?;
    Ok(instance.close()?)
}
