//! A field is declared: the call is checked, compared among the ranks, and told to the other end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use titin_array::{Bytes as _, Ownership, Role, Side};
use titin_model::Pattern;
use titin_wire::control::{FieldEnd, ToManager};
use titin_wire::meta::Dtype;

use super::rendezvous::LocalField;
use super::{Field, FieldConduit, FieldId, InstanceFields, coupled, refused};
use crate::port::{Port, PortEnd, PortId};
use crate::ranks::{FieldCount, call_on};
use crate::{Error, Kind, Result};

impl InstanceFields {
    /// Declares a field on a port. See [`crate::Instance::field`].
    pub(crate) fn declare(
        &self,
        port: PortId,
        side: &Side,
        parts: &Ownership,
        dtypes: &[Dtype],
    ) -> Result<FieldId> {
        self.serial.enter()?;
        let named = &self.serial.table.ports[port.0];
        self.check_declaration(port, side, dtypes)
            .map_err(|why| refused_declaration(&named.name, &why))?;
        let unfit = |error| refused(&self.serial, &named.name, &error);
        let rank = self.place().rank;
        parts.check(&side.decomposition, rank).map_err(unfit)?;
        let role = if named.operator.sends() {
            Role::Sender
        } else {
            Role::Receiver
        };
        let conduits = self.conduits_of(port);
        let sides = conduits
            .iter()
            .map(|conduit| coupled(side, conduit.share(role)))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(unfit)?;
        self.tell_declaration(named, side, dtypes)?;
        for (conduit, side) in conduits.iter().zip(sides) {
            let local = LocalField {
                side,
                parts: parts.clone(),
                role,
                rank,
                peer: conduit.peer.clone(),
                pattern: conduit.pattern.clone(),
            };
            self.change_field(conduit.conduit, |coupling| coupling.declare(local));
        }
        named.has_field.store(true, Ordering::Relaxed);
        Ok(self.add(Field {
            port,
            name: named.name.clone(),
            role,
            dtypes: dtypes.to_vec(),
            conduits,
            state: Mutex::default(),
            count: Arc::new(FieldCount::new(named.name.clone(), role)),
            receive_call: call_on("receive", &named.name),
            withdrawn: AtomicBool::new(false),
        }))
    }

    /// Fails if a port cannot carry such a field.
    fn check_declaration(
        &self,
        port: PortId,
        side: &Side,
        dtypes: &[Dtype],
    ) -> std::result::Result<(), DeclarationError> {
        let named = &self.serial.table.ports[port.0];
        if named.vector {
            return Err(DeclarationError::VectorPort);
        }
        if self.serial.reporter.pending.is_some() {
            return Err(DeclarationError::LightInstance);
        }
        let (given, ranks) = (side.decomposition.ranks(), self.place().count);
        if given != ranks {
            let instance = self.serial.core.name.clone();
            return Err(DeclarationError::Ranks {
                given,
                instance,
                ranks,
            });
        }
        let fields = self.fields.read().expect("never poisoned");
        if fields.iter().any(|field| field.port == port) {
            return Err(DeclarationError::Declared);
        }
        if dtypes.is_empty() {
            return Err(DeclarationError::NoArray);
        }
        let filtered = |end: &PortEnd| !end.chain.is_empty() || end.chain.chooses();
        if let Some((end, _)) = named.every_end().find(|(end, _)| filtered(end)) {
            return Err(DeclarationError::Filtered(end.other()));
        }
        Ok(())
    }

    /// Compares the declaration among the ranks, and tells the manager.
    fn tell_declaration(&self, named: &Port, side: &Side, dtypes: &[Dtype]) -> Result<()> {
        let end = FieldEnd {
            side: side.to_bytes(),
            dtypes: dtypes.iter().map(|dtype| *dtype as u8).collect(),
            takes_joined: self.group.is_none(),
        };
        if let Some(group) = &self.group {
            group.agree(&format!("field on port '{}'", named.name), &end)?;
        }
        self.serial.core.process.expect_fields();
        if self.serial.leads() {
            let (instance, port) = (self.serial.core.name.clone(), named.name.to_string());
            self.serial.tell(&ToManager::Field {
                instance,
                port,
                field: end,
            });
        }
        Ok(())
    }

    fn add(&self, field: Field) -> FieldId {
        if let Some(group) = &self.group {
            group.counts.push(field.count.clone());
        }
        let mut fields = self.fields.write().expect("never poisoned");
        fields.push(Arc::new(field));
        FieldId(fields.len() - 1)
    }

    /// The conduits of a field on a port, also on a rank without ends of the conduits.
    fn conduits_of(&self, port: PortId) -> Vec<FieldConduit> {
        let ends = self.serial.table.ports[port.0].every_end();
        let own = ends.map(|(end, _)| (end.conduit, end.peer.clone()));
        let group = self.group.iter();
        let remote = group.flat_map(|group| group.remote_conduits(port));
        let with_pattern = |(conduit, peer)| FieldConduit {
            conduit,
            peer,
            pattern: self.pattern_of(conduit),
        };
        own.chain(remote).map(with_pattern).collect()
    }

    fn pattern_of(&self, conduit: titin_wire::ConduitId) -> Arc<Pattern> {
        self.patterns.get(&conduit).cloned().unwrap_or_default()
    }
}

/// Why a port cannot carry a field, as the end of a sentence about the field.
#[derive(Debug, thiserror::Error)]
enum DeclarationError {
    #[error("it is a vector port; give each field a port of its own")]
    VectorPort,
    #[error("light instances have no fields")]
    LightInstance,
    #[error("its array is spread over {given} ranks, but {instance} has {ranks}")]
    Ranks {
        given: u32,
        instance: String,
        ranks: u32,
    },
    #[error("it has one already: declare a field once, before the steps")]
    Declared,
    #[error("it has no array; give the element type of each")]
    NoArray,
    #[error(
        "there are filters between it and {0}, which see no field: take them out of the description"
    )]
    Filtered(String),
}

fn refused_declaration(port: &str, why: &DeclarationError) -> Error {
    Error::new(Kind::Usage, format!("field on port '{port}': {why}"))
}
