//! The conduit ends of an instance, by the peers at the other ends.
//!
//! Flat lists, since there may be a hundred thousand ends in a process.

use std::sync::Arc;

/// The instances at the other ends of an instance's conduits.
#[derive(Debug, Default)]
pub(crate) struct NeighbourIndex {
    /// In the order of the names, each with the place of the first end to the peer.
    peers: Vec<(Arc<str>, u32)>,
    ends: Vec<EndIndex>,
}

/// The place of a conduit end: the port, the slot, and the number of a sending end among the ends
/// of the slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndIndex {
    port: u32,
    slot: u32,
    /// `RECEIVES` for a receiving end.
    index: u32,
}

const RECEIVES: u32 = u32::MAX;

impl EndIndex {
    pub(crate) fn sending(port: usize, slot: usize, index: usize) -> Self {
        EndIndex {
            port: port as u32,
            slot: slot as u32,
            index: index as u32,
        }
    }

    pub(crate) fn receiving(port: usize, slot: usize) -> Self {
        EndIndex {
            port: port as u32,
            slot: slot as u32,
            index: RECEIVES,
        }
    }

    pub(crate) fn sends(&self) -> bool {
        self.index != RECEIVES
    }

    pub(crate) fn port(&self) -> usize {
        self.port as usize
    }

    pub(crate) fn place(&self) -> usize {
        self.slot as usize
    }

    pub(crate) fn index(&self) -> usize {
        self.index as usize
    }
}

impl NeighbourIndex {
    /// The index of the given ends, by the peers at the other ends.
    pub(crate) fn of(mut places: Vec<(Arc<str>, EndIndex)>) -> Self {
        places.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut neighbours = NeighbourIndex {
            peers: Vec::new(),
            ends: Vec::with_capacity(places.len()),
        };
        for (peer, place) in places {
            if neighbours
                .peers
                .last()
                .is_none_or(|(last, _)| *last != peer)
            {
                neighbours.peers.push((peer, neighbours.ends.len() as u32));
            }
            neighbours.ends.push(place);
        }
        neighbours.peers.shrink_to_fit();
        neighbours
    }

    /// The names of the peers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.peers.iter().map(|(name, _)| name)
    }

    /// The ends of conduits with the given peer.
    pub(crate) fn ends(&self, peer: &str) -> &[EndIndex] {
        let Ok(at) = self.peers.binary_search_by(|(name, _)| (**name).cmp(peer)) else {
            return &[];
        };
        let end = self
            .peers
            .get(at + 1)
            .map_or(self.ends.len(), |(_, begin)| *begin as usize);
        &self.ends[self.peers[at].1 as usize..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_found_by_the_peer() {
        let peer = |name: &str| -> Arc<str> { name.into() };
        let neighbours = NeighbourIndex::of(vec![
            (peer("b"), EndIndex::receiving(0, 0)),
            (peer("a"), EndIndex::sending(1, 0, 2)),
            (peer("b"), EndIndex::sending(3, 1, 0)),
        ]);
        assert_eq!(
            neighbours.names().map(|name| &**name).collect::<Vec<_>>(),
            ["a", "b"]
        );
        let places = |name| {
            neighbours
                .ends(name)
                .iter()
                .map(|end| (end.port(), end.sends()))
                .collect::<Vec<_>>()
        };
        assert_eq!(places("a"), [(1, true)]);
        assert_eq!(places("b"), [(0, false), (3, true)]);
        assert_eq!(places("c"), []);
        assert_eq!(
            (
                neighbours.ends("a")[0].place(),
                neighbours.ends("a")[0].index()
            ),
            (0, 2)
        );
    }
}
