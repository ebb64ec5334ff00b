//! Malformed bytes, which titin never sends, are refused, and nothing else happens.

mod common;

use common::pairs;
use proptest::prelude::*;
use titin_array::{
    Bytes, Decomposition, DirectoryAnswer, DirectoryEntries, ElementRequest, Exchange, IndexRange,
    Ownership, Region, Register, Role, Side,
};

/// Reads a value. The value, written and read again, must be the same value.
fn read<T: Bytes + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> Option<T> {
    let value = T::from_bytes(bytes).ok()?;
    assert_eq!(T::from_bytes(&value.to_bytes()).as_ref(), Ok(&value));
    Some(value)
}

fn read_all(bytes: &[u8]) {
    read::<Side>(bytes);
    read::<Ownership>(bytes);
    read::<ElementRequest>(bytes);
    read::<DirectoryEntries>(bytes);
    read::<DirectoryAnswer>(bytes);
    read::<Region>(bytes);
}

/// Changes some of the bytes, and may cut the bytes short.
fn broken(mut bytes: Vec<u8>, changes: &[(usize, u8)], keep: usize) -> Vec<u8> {
    let length = bytes.len().max(1);
    for (at, value) in changes {
        if let Some(byte) = bytes.get_mut(at % length) {
            *byte = *value;
        }
    }
    bytes.truncate(keep % (2 * length));
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read_all(&bytes);
    }

    #[test]
    fn broken_descriptions_and_lists(
        (from, to, _) in pairs(3, 5, 4),
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..3),
        keep in any::<usize>(),
    ) {
        read_all(&broken(from.side.to_bytes(), &changes, keep));
        read_all(&broken(to.parts[0].to_bytes(), &changes, keep));
        let ranks = to.side.decomposition.ranks();
        if let Some(side) = read::<Side>(&broken(to.side.to_bytes(), &changes, keep))
            && side.decomposition.ranks() == ranks
            && let Ok(exchange) = Exchange::new(from.side.clone(), side)
            && exchange.is_regular()
        {
            for rank in 0..from.side.decomposition.ranks() {
                let schedule = exchange.schedule(Role::Sender, rank).unwrap();
                prop_assert_eq!(schedule.partners().count(), schedule.count());
                prop_assert!(schedule.partners().all(|partner| partner.rank < ranks));
            }
        }
        let exchange = Exchange::new(from.side.clone(), to.side.clone()).unwrap();
        if exchange.is_regular() {
            return Ok(());
        }
        // Bytes of a peer may have the right form and wrong content. The functions that use them
        // return an error.
        let map = exchange.map(2);
        for (_, entries) in exchange.entries(0, &from.parts[0], &map).unwrap() {
            if let Some(entries) = read::<DirectoryEntries>(&broken(entries.to_bytes(), &changes, keep)) {
                let mut register = Register::new(exchange.clone());
                if register.enter(0, &entries).is_ok() && let Ok(directory) = register.directory() {
                    let _ = directory.answer(0, &entries);
                }
            }
        }
        let ranges = ElementRequest::Ranges(vec![IndexRange { first: 1, length: 3 }]);
        let boxes = ElementRequest::Boxes(vec![Region::whole(&exchange.to().region.extents()).unwrap()]);
        for wants in [ranges, boxes, ElementRequest::Part] {
            if let Some(wants) = read::<ElementRequest>(&broken(wants.to_bytes(), &changes, keep)) {
                let _ = exchange.sending(0, &from.parts[0], &[(0, wants.clone()), (99, wants)]);
            }
        }
        let answers = [DirectoryAnswer::Ranges(vec![(0, IndexRange { first: 0, length: 3 })]), DirectoryAnswer::Boxes(vec![])];
        for answer in answers {
            if let Some(answer) = read::<DirectoryAnswer>(&broken(answer.to_bytes(), &changes, keep)) {
                let _ = exchange.receiving(0, &to.parts[0], vec![answer]);
            }
        }
    }
}

#[test]
fn lengths_that_lie_cost_nothing() {
    // A list that claims 2³² - 1 boxes and holds no box.
    assert!(Ownership::from_bytes(&[1, 255, 255, 255, 255]).is_err());
    assert!(Ownership::from_bytes(&[1, 255, 255, 255, 255, 0, 0, 0]).is_err());
    assert!(DirectoryEntries::from_bytes(&[2, 255, 255, 255, 255, 0]).is_err());
    assert!(Region::from_bytes(&[200]).is_err());
}

#[test]
fn wants_outside_of_what_is_coupled_are_refused() {
    let boxes = Decomposition::boxes(&[8], 1).unwrap();
    let to = Side::new(boxes.clone()).region(Region::new(&[0], &[4]).unwrap());
    let from = Side::new(boxes).region(Region::new(&[2], &[6]).unwrap());
    let exchange = Exchange::new(from, to).unwrap();
    let send = |lower, upper| {
        let wants = ElementRequest::Boxes(vec![Region::new(&[lower], &[upper]).unwrap()]);
        let parts = Ownership::Boxes(vec![Region::new(&[0], &[5]).unwrap()]);
        exchange
            .sending(0, &parts, &[(0, wants)])
            .map(|schedule| schedule.elements())
            .map_err(|error| error.to_string())
    };
    assert_eq!(send(0, 4), Ok(3));
    assert_eq!(
        send(0, 5).unwrap_err(),
        "rank 0 wants [0:5], outside what is coupled"
    );
    assert_eq!(
        send(2, 2).unwrap_err(),
        "rank 0 wants [2:2], outside what is coupled"
    );
    let nothing = send(3, 4).unwrap_err();
    assert_eq!(
        nothing,
        "rank 0 wants [5:6] from rank 0 of the sender, which has nothing of it"
    );
}

#[test]
fn schedules_are_refused_to_ranks_that_are_none() {
    let side = Side::new(Decomposition::block(&[4], &[2]).unwrap());
    let exchange = Exchange::new(side.clone(), side).unwrap();
    assert!(exchange.schedule(Role::Sender, 2).is_err());
    assert!(exchange.receiving(2, &Ownership::Rule, Vec::new()).is_err());
    assert!(
        exchange
            .sending(0, &Ownership::Rule, &[(2, ElementRequest::Part)])
            .is_err()
    );
}
