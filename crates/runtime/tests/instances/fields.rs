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
    // The receiver has forgotten the field, so the withdrawal is not told again.
    a.withdraw_field(sends).unwrap();
    a.close().unwrap();
}

/// The metadata say that a field follows, so any data may be sent.
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

/// The receiver could not distinguish an ordinary message from the announcement of a field.
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

/// Arrays of 3 by 4 bytes: the place of the first element, and the strides.
const LAYOUTS: [(u64, [i64; 2]); 5] = [
    (0, [4, 1]),
    (0, [1, 3]),
    (7, [6, 1]),
    (11, [-4, -1]),
    (1, [9, 2]),
];

const GRID: [u64; 2] = [3, 4];

fn strided(number: usize) -> LocalLayout {
    let (offset, strides) = LAYOUTS[number % LAYOUTS.len()];
    LocalLayout::strided(&GRID, offset, &strides).unwrap()
}

/// The places of the elements in memory, in the order of the rows.
fn element_places(number: usize) -> Vec<usize> {
    let (offset, strides) = LAYOUTS[number % LAYOUTS.len()];
    let place = |row: i64, column: i64| offset as i64 + row * strides[0] + column * strides[1];
    let row = |row| (0..4).map(move |column| place(row, column) as usize);
    (0..3).flat_map(row).collect()
}

/// Small pieces, which go in the message that announces them from the second step on. The layouts
/// of both arrays change from step to step, so that no plan of copies may be used for another
/// layout.
#[test]
fn a_small_field_goes_from_any_layouts_to_any_others() {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    let (a, b) = (stage.join("a"), stage.join("b"));
    let grid = |instance: &Instance, port: &str| {
        let side = Side::new(Decomposition::serial(&GRID).unwrap());
        let port = instance.port(port).unwrap();
        let dtypes = [Dtype::UInt8, Dtype::UInt8];
        let declared = instance.field(port, side, Ownership::Rule, &dtypes);
        declared.unwrap()
    };
    let (sends, receives) = (grid(&a, "out"), grid(&b, "in"));
    assert!(a.reuse().unwrap() && b.reuse().unwrap());
    let value =
        |step: usize, array: usize, element: usize| (step + 100 * array + 3 * element) as u8;
    for step in 0..LAYOUTS.len().pow(2) {
        // Each pair of layouts comes once, and each layout comes twice in a row.
        let (from, to) = ([step / 2, step / 2 + 1], [step / 5, step]);
        let sources: Vec<Vec<u8>> = (0..2)
            .map(|array| {
                let mut memory = vec![255; 40];
                for (element, place) in element_places(from[array]).into_iter().enumerate() {
                    memory[place] = value(step, array, element);
                }
                memory
            })
            .collect();
        let layouts = [from.map(strided), to.map(strided)];
        let source = |array: usize| SourceArray {
            memory: &sources[array],
            local: &layouts[0][array],
            size: 1,
        };
        a.send_field(sends, &[source(0), source(1)], step as f64, None)
            .unwrap();
        let mut targets = [[255; 40]; 2];
        let [first, second] = &mut targets;
        let target = |memory, array: usize| TargetArray {
            memory,
            local: &layouts[1][array],
            size: 1,
        };
        let mut arrays = [target(&mut first[..], 0), target(&mut second[..], 1)];
        b.receive_field(receives, &mut arrays, None, Patience::Forever)
            .unwrap();
        for array in 0..2 {
            let mut expected = [255; 40];
            for (element, place) in element_places(to[array]).into_iter().enumerate() {
                expected[place] = value(step, array, element);
            }
            assert_eq!(targets[array], expected, "step {step}, array {array}");
        }
    }
}
