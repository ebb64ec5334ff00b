//! Sends malformed messages, which no call of titin makes. Each file that the command line names is
//! one message on port `out`: the bytes of the file stand where a structure should.
//!
//! Tests use this program to check that receivers in every language refuse malformed data.

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
