//! What is refused, and that it leaves nothing behind.

use titin_runtime::*;

use crate::stage::{Role, Stage};

#[test]
fn a_port_of_the_other_direction_is_a_mistake_of_the_call_itself() {
    let stage =
        Stage::open(&[("a", "o_i: out; s: in"), ("b", "o_i: out; s: in")], &["a.out b.in", "b.out a.in"]);
    let role = || -> Role {
        Box::new(|instance| {
            let (out, into) = (instance.port("out")?, instance.port("in")?);
            assert!(instance.reuse()?);
            let array = Layout::new(Dtype::UInt8, Order::C, [1]);
            let refused = [
                instance.send(into, None, &Payload::nil(), 0.0, None, None),
                instance.loan(into, None, array).map(drop),
                instance.receive(out, None, Patience::Forever).map(drop),
                instance.try_receive(out, None).map(drop),
                instance.receive_any(&[into, out], Patience::Forever).map(drop),
            ];
            for error in refused.map(Result::unwrap_err) {
                assert_eq!(error.kind, Kind::Usage, "{error}");
            }
            Ok(())
        })
    };
    assert_eq!(stage.play(vec![("a", role()), ("b", role())]), [Ok(()), Ok(())]);
}
