//! The schedules of the ranks, for all kinds of decompositions.

use crate::local_layout::shapes;
use crate::partner_grid::PartnerGrid;
use crate::partner_list::PartnerList;
use crate::schedule::PartnerSet;
use crate::{
    DirectoryAnswer, ElementRequest, Error, Exchange, Ownership, Role, Schedule, Side,
    box_schedule, index_schedule,
};

impl Exchange {
    /// The schedule of a rank between two regular decompositions, in closed form. The time grows
    /// with the number of pieces of the rank and of sharing processes along each dimension, not
    /// with the array or with the number of partners.
    pub fn schedule(&self, role: Role, rank: u32) -> Result<Schedule, Error> {
        if !self.is_regular() {
            return Err(Error::Invalid(
                "a side is irregular: its ranks must tell what they own or want".into(),
            ));
        }
        let (own, other) = self.sides(role);
        let shapes = shapes(&own.decomposition, rank, &Ownership::Rule)?;
        let product = own
            .owned(rank, &Ownership::Rule)
            .first()
            .and_then(|part| PartnerGrid::new(part, other));
        let shared = product.map_or_else(
            || PartnerSet::List(PartnerList::default()),
            PartnerSet::Grid,
        );
        Ok(Schedule {
            order: self.to.order,
            shapes,
            shared,
        })
    }

    /// The schedule of a rank of the receiver, and the requests to the partners. Between regular
    /// sides there are no requests. `answers` come from the directory, if there is one.
    pub fn receiving(
        &self,
        rank: u32,
        parts: &Ownership,
        answers: Vec<DirectoryAnswer>,
    ) -> Result<(Schedule, Vec<(u32, ElementRequest)>), Error> {
        parts.check(&self.to.decomposition, rank)?;
        if self.is_regular() {
            return Ok((self.schedule(Role::Receiver, rank)?, Vec::new()));
        }
        if self.by_numbers() {
            index_schedule::receiving(self, rank, parts, answers)
        } else {
            box_schedule::receiving(self, rank, parts, answers)
        }
    }

    /// The schedule of a rank of the sender, from the requests of the receiver's ranks. Between
    /// regular sides there are no requests.
    pub fn sending(
        &self,
        rank: u32,
        parts: &Ownership,
        wants: &[(u32, ElementRequest)],
    ) -> Result<Schedule, Error> {
        parts.check(&self.from.decomposition, rank)?;
        let ranks = self.to.decomposition.ranks();
        if let Some((receiver, _)) = wants.iter().find(|(receiver, _)| *receiver >= ranks) {
            return Err(Error::Broken(format!(
                "a want of rank {receiver}; the receiver has {ranks} ranks"
            )));
        }
        if self.is_regular() {
            return self.schedule(Role::Sender, rank);
        }
        if self.by_numbers() {
            index_schedule::sending(self, rank, parts, wants)
        } else {
            box_schedule::sending(self, rank, parts, wants)
        }
    }

    /// The side of a role, and the other side.
    fn sides(&self, role: Role) -> (&Side, &Side) {
        match role {
            Role::Sender => (&self.from, &self.to),
            Role::Receiver => (&self.to, &self.from),
        }
    }
}
