//! The two sides of the benchmark. The first side sends an array and receives an array of the same
//! size from the second side. The time of a message is half of a round trip.
//!
//! Both sides rewrite their arrays between sends. The first side rewrites before the clock starts;
//! for small messages, the first side rewrites once for each group. The second side rewrites after
//! sending the answer.

use std::time::Instant;

use titin_draw::MessageTime;
use titin_runtime::{
    Content, Dtype, Instance, Layout, Patience, Payload, PortId, Result, StorageOrder,
};

use super::{Effort, SIZES, SMALL};

/// How many small messages are timed as a group.
const AT_ONCE: u32 = 50;
/// The fewest times for a size.
const LEAST: usize = 3;

/// The ports of either side.
pub(super) const PORTS: &str = "o_i: out; s: in";

/// A side of the benchmark, with the side's array and simulated time.
struct PingPongSide<'a> {
    instance: &'a Instance,
    incoming: PortId,
    outgoing: PortId,
    array: Vec<u8>,
    moment: f64,
}

impl<'a> PingPongSide<'a> {
    fn new(instance: &'a Instance) -> Result<Self> {
        instance.reuse()?;
        let (incoming, outgoing) = (instance.port("in")?, instance.port("out")?);
        let array = vec![0; *SIZES.last().expect("there are sizes") as usize];
        Ok(PingPongSide {
            instance,
            incoming,
            outgoing,
            array,
            moment: 0.0,
        })
    }

    fn rewrite(&mut self, bytes: u64) {
        let stamp = self.array[0].wrapping_add(1);
        self.array[..bytes as usize].fill(stamp);
    }

    fn send(&mut self, bytes: u64) -> Result<()> {
        let layout = Layout::new(Dtype::UInt8, StorageOrder::C, vec![bytes]);
        self.pass(&Payload::array(&layout, &self.array[..bytes as usize]))?;
        self.moment += 1.0;
        Ok(())
    }

    fn pass(&self, payload: &Payload<'_>) -> Result<()> {
        self.instance
            .send(self.outgoing, None, payload, self.moment, None, None)
    }

    /// The seconds that a round trip takes, averaged over `count` round trips.
    fn round_trips(&mut self, bytes: u64, count: u32) -> Result<f64> {
        self.rewrite(bytes);
        let start = Instant::now();
        for _ in 0..count {
            self.send(bytes)?;
            self.take()?;
        }
        Ok(start.elapsed().as_secs_f64() / f64::from(count))
    }

    /// Receives a message. Returns the message's size, or `None` for the last message: the last
    /// message has no data.
    fn take(&self) -> Result<Option<u64>> {
        let message = self
            .instance
            .receive(self.incoming, None, Patience::Forever)?;
        Ok((*message.content() != Content::Nil).then_some(message.bytes().len() as u64))
    }
}

/// The first side: measures all sizes up to a size that takes too long.
pub(super) fn measure(instance: &Instance, effort: &Effort<'_>) -> Result<Vec<MessageTime>> {
    let mut side = PingPongSide::new(instance)?;
    // The first round trip includes the start of the other side and the connection, so this round
    // trip is not counted.
    side.send(0)?;
    side.take()?;
    let mut found = Vec::new();
    for bytes in SIZES {
        (effort.progress)(bytes);
        let figure = size(&mut side, bytes, effort)?;
        // Small messages say nothing of the bandwidth, so at least one larger size is measured.
        let slow = bytes > SMALL && figure.seconds * 2.0 > effort.time.as_secs_f64();
        found.push(figure);
        if slow {
            break;
        }
    }
    side.pass(&Payload::nil())?;
    Ok(found)
}

fn size(side: &mut PingPongSide<'_>, bytes: u64, effort: &Effort<'_>) -> Result<MessageTime> {
    let at_once = if bytes <= SMALL { AT_ONCE } else { 1 };
    let mut times = Vec::new();
    let begin = Instant::now();
    // The first two touch fresh memory, and are not counted.
    let mut warm = 2;
    while times.len() < LEAST || begin.elapsed() < effort.time {
        let time = side.round_trips(bytes, at_once)? / 2.0;
        if warm > 0 {
            warm -= 1;
        } else {
            times.push(time);
        }
        if times.is_empty() && begin.elapsed() > effort.time {
            // Even the uncounted round trips took longer than the time for this size. So the last
            // time is counted.
            times.push(time);
            break;
        }
    }
    let (seconds, spread) = median_and_spread(&mut times);
    Ok(MessageTime {
        bytes,
        seconds,
        spread,
        trips: times.len() as u64 * u64::from(at_once),
    })
}

/// The median, and half the interquartile range as a share of the median.
pub(crate) fn median_and_spread(times: &mut [f64]) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize];
    let median = times[times.len() / 2];
    (median, (at(0.75) - at(0.25)) / 2.0 / median)
}

/// The other side: sends an array of the same size back for each array.
pub(crate) fn echo(instance: &Instance) -> Result<()> {
    let mut side = PingPongSide::new(instance)?;
    while let Some(bytes) = side.take()? {
        let bytes = bytes.min(side.array.len() as u64);
        side.send(bytes)?;
        side.rewrite(bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_that_of_the_middle_half() {
        let mut times = [1.0, 1.1, 0.9, 50.0, 1.2];
        let (median, spread) = median_and_spread(&mut times);
        assert_eq!(median, 1.1);
        assert!((spread - 0.1 / 1.1).abs() < 1e-12, "{spread}");
        assert_eq!(median_and_spread(&mut [2.0]), (2.0, 0.0));
    }
}
