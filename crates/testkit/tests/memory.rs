//! What is measured by the memory of the process, alone in one: other tests would be counted too.

use titin_testkit::conformance::the_latest_message_does_so_while_the_receiver_is_stalled as case;
use titin_testkit::{Pair, Watchdog};

#[test]
fn the_latest_message_does_so_while_the_receiver_is_stalled_on_every_medium() {
    let _watchdog = Watchdog::start();
    case(Pair::inproc);
    case(Pair::tcp);
}
