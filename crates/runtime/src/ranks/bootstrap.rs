//! How the ranks of a program find each other when the program opens its instance: by the program's
//! own communicator.
//!
//! A rank that fails still takes part, and passes its error on in place of a value. So all ranks
//! hear of the failure before any rank goes on, and no rank is left behind in a call of MPI.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use titin_transport::Doorbell;
use titin_wire::control;
use titin_wire::ranks::{Invitation, RankProcess};

use super::outcome::{outcome, result};
use crate::communicator::Communicator;
use crate::peer_names::written_process;
use crate::process::{FieldHandler, Process};
use crate::{Error, Kind, Options, Result};

/// The most bytes of one message: the list of a million ranks.
const MOST: usize = 1 << 28;

/// The knowledge of a rank once the ranks have found each other.
pub(crate) struct Bootstrapped {
    pub(crate) instance: String,
    pub(crate) process: Arc<Process>,
    pub(crate) rank: u32,
    /// The processes of all ranks; empty for a serial program.
    pub(crate) roll: Vec<RankProcess>,
}

/// Finds the other ranks. All ranks must call this function, and the function fails on all ranks or
/// on none. The manager's answer will ring the bell.
pub(crate) fn bootstrap(
    options: &Options,
    communicator: &dyn Communicator,
    bell: &Arc<Doorbell>,
    fields: Arc<dyn FieldHandler>,
) -> Result<Bootstrapped> {
    let rank = communicator.rank();
    let bootstrap = Bootstrap {
        communicator,
        is_first: rank == 0,
    };
    let invitation = || {
        Ok(Invitation {
            instance: options.find_instance()?,
            connection: options.find_run()?,
        })
    };
    let Invitation {
        instance,
        connection,
    } = bootstrap.tell(bootstrap.is_first.then(invitation))?;
    let process = Process::join_as_rank(&connection, rank);
    let place = process
        .as_ref()
        .map(|process| process.place())
        .map_err(Clone::clone);
    let gathered = bootstrap.gather(place).transpose();
    let roll: Vec<RankProcess> = bootstrap.tell(gathered.map(|gathered| check(gathered?)))?;
    let process = process?;
    let placed = process
        .expect_answer(&instance, bell.clone(), fields)
        .and_then(|()| process.join_tree(&instance, rank, &roll));
    // A rank may send along the tree only once all ranks have their places.
    let gathered = bootstrap.gather(placed);
    let all = bootstrap.tell(
        gathered
            .transpose()
            .map(|gathered| all_or_none(gathered?).map(drop)),
    );
    all.inspect_err(|_| process.cancel_request(&instance))?;
    Ok(Bootstrapped {
        instance,
        process,
        rank,
        roll,
    })
}

/// The values of all ranks, if none has failed.
fn all_or_none<T>(gathered: Vec<Result<T>>) -> Result<Vec<T>> {
    let named = |(rank, each): (usize, Result<T>)| {
        each.map_err(|error| Error::new(error.kind, format!("rank {rank}: {}", error.text)))
    };
    gathered.into_iter().enumerate().map(named).collect()
}

/// All ranks, if each could begin.
fn check(gathered: Vec<Result<RankProcess>>) -> Result<Vec<RankProcess>> {
    let roll = all_or_none(gathered)?;
    let mut known = HashMap::new();
    for (rank, place) in roll.iter().enumerate() {
        if let Some(twin) = known.insert(place.endpoint, rank) {
            let text = format!(
                "{} and rank {twin} are in one process: each rank of a parallel program needs a process of its own",
                written_process(rank as u32, place)
            );
            return Err(Error::new(Kind::Usage, text));
        }
    }
    Ok(roll)
}

struct Bootstrap<'a> {
    communicator: &'a dyn Communicator,
    /// Whether this is rank 0.
    is_first: bool,
}

impl Bootstrap<'_> {
    /// Gives the value or the error of rank 0 to all ranks. `said` is for rank 0 alone.
    fn tell<T: Serialize + DeserializeOwned>(&self, said: Option<Result<T>>) -> Result<T> {
        let mut bytes = said
            .map(|said| control::encode(&outcome(said)))
            .unwrap_or_default();
        let length = self.share(bytes.len())?;
        if length == 0 || length > MOST {
            return Err(unreadable(&format!("{length} bytes")));
        }
        bytes.resize(length, 0);
        self.communicator.broadcast(&mut bytes)?;
        read(&bytes)?
    }

    /// Gives the value or the error of each rank to rank 0, in the order of the ranks.
    fn gather<T: Serialize + DeserializeOwned>(
        &self,
        mine: Result<T>,
    ) -> Result<Option<Vec<Result<T>>>> {
        let mut mine = control::encode(&outcome(mine));
        let count = self.communicator.ranks() as usize;
        let room = |each: usize| {
            if self.is_first {
                vec![0; each * count]
            } else {
                Vec::new()
            }
        };
        let mut lengths = room(8);
        self.communicator
            .gather(&(mine.len() as u64).to_le_bytes(), &mut lengths)?;
        let lengths: Vec<usize> = lengths
            .as_chunks()
            .0
            .iter()
            .map(|bytes| u64::from_le_bytes(*bytes) as usize)
            .collect();
        let longest = self.share(lengths.iter().copied().max().unwrap_or_default())?;
        let fits = |length: &usize| (1..=longest).contains(length);
        if longest > MOST || !fits(&mine.len()) || !lengths.iter().all(fits) {
            return Err(unreadable(&format!(
                "messages of {lengths:?} bytes, the longest of {longest}"
            )));
        }
        mine.resize(longest, 0);
        let mut all = room(longest);
        self.communicator.gather(&mine, &mut all)?;
        if !self.is_first {
            return Ok(None);
        }
        let each = all
            .chunks(longest)
            .zip(lengths)
            .map(|(bytes, length)| read(&bytes[..length]));
        each.collect::<Result<_>>().map(Some)
    }

    /// Gives the number of rank 0 to all ranks.
    fn share(&self, number: usize) -> Result<usize> {
        let mut bytes = (number as u64).to_le_bytes();
        self.communicator.broadcast(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes) as usize)
    }
}

/// Reads a value or an error of another rank.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<Result<T>> {
    control::decode(bytes)
        .map(result)
        .map_err(|error| unreadable(&error.to_string()))
}

fn unreadable(why: &str) -> Error {
    let text = format!(
        "what a rank has told by the program's communicator cannot be read: {why}; do all ranks use the same \
         release of titin, and do broadcast and gather copy bytes as they are?"
    );
    Error::new(Kind::Connection, text)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Ranks that are threads.
    struct Threads {
        rank: u32,
        to: Vec<Sender<Vec<u8>>>,
        from: Vec<Receiver<Vec<u8>>>,
    }

    impl Threads {
        fn team(ranks: usize) -> Vec<Threads> {
            let mut team: Vec<Threads> = (0..ranks)
                .map(|rank| Threads {
                    rank: rank as u32,
                    to: Vec::new(),
                    from: Vec::new(),
                })
                .collect();
            for one in 0..ranks {
                for other in 0..ranks {
                    let (sender, receiver) = channel();
                    team[one].to.push(sender);
                    team[other].from.push(receiver);
                }
            }
            team
        }
    }

    impl Communicator for Threads {
        fn rank(&self) -> u32 {
            self.rank
        }
        fn ranks(&self) -> u32 {
            self.to.len() as u32
        }
        fn broadcast(&self, bytes: &mut [u8]) -> Result<()> {
            if self.rank == 0 {
                self.to
                    .iter()
                    .skip(1)
                    .for_each(|to| to.send(bytes.to_vec()).unwrap());
            } else {
                bytes.copy_from_slice(&self.from[0].recv().unwrap());
            }
            Ok(())
        }
        fn gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
            self.to[0].send(mine.to_vec()).unwrap();
            if self.rank == 0 {
                let each = all.chunks_mut(mine.len()).zip(&self.from);
                each.for_each(|(room, from)| room.copy_from_slice(&from.recv().unwrap()));
            }
            Ok(())
        }
    }

    /// A broken communicator. `Some` number is added to each byte; with `None` no byte is copied.
    struct Broken(Option<u8>);

    impl Communicator for Broken {
        fn rank(&self) -> u32 {
            0
        }
        fn ranks(&self) -> u32 {
            2
        }
        fn broadcast(&self, bytes: &mut [u8]) -> Result<()> {
            bytes
                .iter_mut()
                .for_each(|byte| *byte = byte.wrapping_add(self.0.unwrap_or(0)));
            Ok(())
        }
        fn gather(&self, mine: &[u8], all: &mut [u8]) -> Result<()> {
            let Some(more) = self.0 else { return Ok(()) };
            for (to, from) in all.iter_mut().zip(mine.iter().cycle()) {
                *to = from.wrapping_add(more);
            }
            Ok(())
        }
    }

    #[test]
    fn a_communicator_that_spoils_bytes_is_told() {
        for more in [None, Some(1), Some(7), Some(128), Some(255)] {
            for is_first in [true, false] {
                let broken = Broken(more);
                let bootstrap = Bootstrap {
                    communicator: &broken,
                    is_first,
                };
                let gathered = bootstrap.gather(Ok("here".to_owned()));
                let told = bootstrap.tell(is_first.then(|| Ok("here".to_owned())));
                // Rank 0 has its own value, whether or not other ranks get the value. A rank
                // but 0 receives nothing in a gather.
                let must_fail = [is_first, more.is_some() || !is_first];
                for (error, must_fail) in [gathered.err(), told.err()].into_iter().zip(must_fail) {
                    let told = error
                        .as_ref()
                        .map(|error| error.text.contains("copy bytes as they are"));
                    assert!(
                        told == Some(true) || told.is_none() && !must_fail,
                        "{more:?} {is_first}: {error:?}"
                    );
                }
            }
        }
    }

    fn on_each<T: Send>(ranks: usize, act: impl Fn(Bootstrap<'_>) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let run = |team: Threads| {
                let act = &act;
                scope.spawn(move || {
                    act(Bootstrap {
                        communicator: &team,
                        is_first: team.rank == 0,
                    })
                })
            };
            let threads: Vec<_> = Threads::team(ranks).into_iter().map(run).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        })
    }

    #[test]
    fn what_rank_0_says_comes_to_all_and_so_does_its_failure() {
        let told = on_each(3, |bootstrap| {
            bootstrap.tell(bootstrap.is_first.then(|| Ok("here".to_owned())))
        });
        assert!(
            told.iter().all(|told| told.as_deref() == Ok("here")),
            "{told:?}"
        );
        let failure = Error::new(Kind::Setting, "no such run");
        let told = on_each(3, |bootstrap| {
            bootstrap.tell::<String>(bootstrap.is_first.then(|| Err(failure.clone())))
        });
        assert!(
            told.iter().all(|told| *told == Err(failure.clone())),
            "{told:?}"
        );
    }

    #[test]
    fn what_each_has_comes_to_rank_0_whatever_its_length() {
        let gathered = on_each(4, |bootstrap| {
            let rank = bootstrap.communicator.rank() as usize;
            let mine = if rank == 2 {
                Err(Error::new(Kind::Usage, "not I"))
            } else {
                Ok("x".repeat(10 * rank))
            };
            bootstrap.gather(mine).unwrap()
        });
        let at_first = gathered[0].as_ref().unwrap();
        assert_eq!(at_first[0], Ok(String::new()));
        assert_eq!(at_first[2].as_ref().unwrap_err().text, "not I");
        assert_eq!(at_first[3], Ok("x".repeat(30)));
        assert!(gathered[1..].iter().all(Option::is_none));
    }
}
