//! Fields between instances of one process.

use titin_runtime::array::{
    Decomposition, LocalLayout, Order as Storage, Ownership, Side, SourceArray, TargetArray,
};
use titin_runtime::*;

use crate::stage::Stage;

const SHAPE: [u64; 1] = [4];

fn declare(instance: &Instance, port: &str) -> FieldId {
    let side = Side::new(Decomposition::serial(&SHAPE).unwrap());
    instance
        .field(
            instance.port(port).unwrap(),
            side,
            Ownership::Rule,
            &[Dtype::UInt8],
        )
        .unwrap()
}

fn local() -> LocalLayout {
    let decomposition = Decomposition::serial(&SHAPE).unwrap();
    LocalLayout::dense(&decomposition, 0, &Ownership::Rule, None, Storage::C).unwrap()
}

fn send(instance: &Instance, field: FieldId, step: u8) -> Result<()> {
    let source = SourceArray {
        memory: &[step; 4],
        local: &local(),
        size: 1,
    };
    instance.send_field(field, &[source], step.into(), None)
}

fn receive(instance: &Instance, field: FieldId) -> Result<[u8; 4]> {
    let mut memory = [0; 4];
    let target = TargetArray {
        memory: &mut memory,
        local: &local(),
        size: 1,
    };
    instance.receive_field(field, &mut [target], None, Patience::Forever)?;
    Ok(memory)
}

#[test]
fn a_receiver_of_a_withdrawn_field_may_leave_before_its_sender() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    let (a, b) = (stage.join("a"), stage.join("b"));
    let (sends, receives) = (declare(&a, "out"), declare(&b, "in"));
    assert!(a.reuse().unwrap() && b.reuse().unwrap());
    for step in 0..2 {
        send(&a, sends, step).unwrap();
        assert_eq!(receive(&b, receives), Ok([step; 4]));
    }
    a.withdraw_field(sends).unwrap();
    assert_eq!(receive(&b, receives).unwrap_err().kind, Kind::PortClosed);
    let refused = || {
        let late = a
            .send(
                a.port("out").unwrap(),
                None,
                &Payload::nil(),
                2.0,
                None,
                None,
            )
            .unwrap_err();
        assert_eq!(late.kind, Kind::Usage);
        assert!(
            late.text.contains("the field on this port was withdrawn"),
            "{late}"
        );
    };
    refused();
    b.close().unwrap();
    refused();
    // What the receiver has forgotten is not told again.
    a.withdraw_field(sends).unwrap();
    a.close().unwrap();
}

/// What says that a field follows stands in the metadata, so that data may be whatever they are.
#[test]
fn no_data_are_taken_for_a_field() {
    let stage = Stage::open(
        &[("a", "o_i: out"), ("b", "s: in more")],
        &["a.out b.in", "a.out b.more"],
    );
    let (a, b) = (stage.join("a"), stage.join("b"));
    assert!(a.reuse().unwrap() && b.reuse().unwrap());
    let said: structure::Value<&[u8]> =
        structure::Value::Text("a field follows, from rank to rank".into());
    let encoded = structure::encode(&said).unwrap();
    a.send(
        a.port("out").unwrap(),
        None,
        &Payload::structure(&encoded),
        0.0,
        None,
        None,
    )
    .unwrap();
    let message = b
        .receive(b.port("in").unwrap(), None, Patience::Forever)
        .unwrap();
    assert_eq!(message.bytes(), encoded.to_bytes());
    let error = receive(&b, declare(&b, "more")).unwrap_err();
    assert_eq!(error.kind, Kind::TypeMismatch);
    assert!(
        error.text.contains("its sender sends ordinary messages"),
        "{error}"
    );
}

#[test]
fn a_field_is_no_message_for_an_ordinary_call() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    let (a, b) = (stage.join("a"), stage.join("b"));
    let (sends, receives) = (declare(&a, "out"), declare(&b, "in"));
    assert!(a.reuse().unwrap() && b.reuse().unwrap());
    send(&a, sends, 7).unwrap();
    let port = b.port("in").unwrap();
    for error in [
        b.receive(port, None, Patience::Forever).unwrap_err(),
        b.try_receive(port, None).unwrap_err(),
        b.receive_any(&[port], Patience::Forever).unwrap_err(),
    ] {
        assert_eq!(error.kind, Kind::Usage);
        assert!(
            error.text.contains(
                "the field on port 'in' comes from rank to rank: receive it by the field"
            ),
            "{error}"
        );
    }
    assert_eq!(receive(&b, receives), Ok([7; 4]));
}

/// Its receiver could not tell it from what says that the field follows.
#[test]
fn an_ordinary_message_is_refused_where_its_sender_has_a_field() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    let (a, b) = (stage.join("a"), stage.join("b"));
    let (sends, receives) = (declare(&a, "out"), declare(&b, "in"));
    assert!(a.reuse().unwrap() && b.reuse().unwrap());
    send(&a, sends, 1).unwrap();
    let port = a.port("out").unwrap();
    let layout = Layout {
        dtype: Dtype::UInt8,
        order: StorageOrder::C,
        shape: vec![4].into(),
        names: Vec::new(),
    };
    for (call, error) in [
        (
            "send",
            a.send(port, None, &Payload::nil(), 2.0, None, None)
                .unwrap_err(),
        ),
        ("loan", a.loan(port, None, layout).map(drop).unwrap_err()),
    ] {
        assert_eq!(error.kind, Kind::Usage);
        let text = format!("a: {call} on port 'out', which carries a field: send by the field");
        assert!(error.text.starts_with(&text), "{error}");
    }
    send(&a, sends, 3).unwrap();
    assert_eq!(
        (receive(&b, receives), receive(&b, receives)),
        (Ok([1; 4]), Ok([3; 4]))
    );
}
