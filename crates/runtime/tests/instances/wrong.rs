//! A peer that belongs to the run and sends wrong bytes.

use titin_runtime::*;
use titin_testkit::{header, message};
use titin_wire::ConduitId;
use titin_wire::control::ToProgram;
use titin_wire::frame::{Frame, Head};

use crate::hand::{Hand, hear};
use crate::stage::Stage;

/// Returns the error of a receiver whose peer sends these bytes.
fn verdict(bytes: &[u8]) -> Error {
    verdict_after(|_, _| (), bytes)
}

/// As [`verdict`], after the receiver and the peer have made the calls of `begin`.
fn verdict_after(begin: fn(&mut Hand, &Instance), bytes: &[u8]) -> Error {
    let stage = Stage::open(&[("a", "o_i: out"), ("b", "s: in")], &["a.out b.in"]);
    let b = stage.join("b");
    assert!(b.reuse().unwrap());
    let mut hand = Hand::join(&stage, ("a", "o_i", "out"), "b");
    begin(&mut hand, &b);
    hand.peer.write(bytes);
    let error = b
        .receive(b.port("in").unwrap(), None, Patience::Forever)
        .unwrap_err();
    b.note(&error);
    assert_eq!(b.close(), Err(error.clone()));
    // The run fails by this error, and no other instance is blamed.
    loop {
        if let ToProgram::RunFailed { culprit, text, .. } = hear(&mut hand.manager) {
            assert!(
                culprit == "b" && text.contains(&error.text),
                "{culprit}: {text}"
            );
            return error;
        }
    }
}

#[test]
fn settings_that_were_never_sent_are_missed() {
    let meta = Meta {
        overlay: 3,
        ..Meta::default()
    }
    .encode();
    let head = Head::new(ConduitId(0), 0, 0.0, None);
    let data = Frame::Data {
        head,
        meta: meta.len() as u32,
        body: 0,
        total: 0,
    };
    let error = verdict(&[&header(&data)[..], &meta].concat());
    assert_eq!(error.kind, Kind::TypeMismatch);
    let text =
        "b: port 'in': message 1 of a.out is to go with settings overlay 3, which was never sent";
    assert!(error.text.starts_with(text), "{error}");
}

#[test]
fn a_link_that_brings_garbage_is_given_up_at_once_and_named() {
    let error = verdict_after(Hand::become_known, &[0xee; 64]);
    assert_eq!(error.kind, Kind::Connection);
    assert!(
        error
            .text
            .starts_with("the connection to the process of \"a\" brings what cannot be understood"),
        "{error}"
    );
}

#[test]
fn data_for_a_conduit_that_nobody_has_are_missed() {
    let error = verdict(&message(77, 0, b"x", 1));
    assert_eq!(error.kind, Kind::Connection);
    let text = "the process of \"a\" has sent a message by conduit 77, which no instance of this process has";
    assert!(error.text.starts_with(text), "{error}");
}
