//! Sets of ports, of which a program receives from any.

use std::collections::HashMap;
use std::sync::Arc;

use titin_runtime::{Instance, PortChoice, PortId, Result};

/// Ports of one instance. Programs give the same ports with every call, so the set of the last call is kept.
pub(crate) struct PortSet {
    /// Addresses of the port handles, in the order of the program's list.
    handles: Vec<usize>,
    pub(crate) choice: Arc<PortChoice>,
    /// For each port its index in the program's list, and whether it has slots.
    pub(crate) ports: HashMap<PortId, (usize, bool)>,
}

impl PortSet {
    /// The set of these ports. The ids are those of the handles.
    pub(crate) fn new<T>(
        instance: &Instance,
        handles: &[*const T],
        ids: &[PortId],
    ) -> Result<Self> {
        let ports = ids
            .iter()
            .enumerate()
            .map(|(index, id)| (*id, (index, instance.info(*id).vector)))
            .collect();
        Ok(PortSet {
            handles: handles.iter().map(|handle| handle.addr()).collect(),
            choice: instance.choice(ids)?,
            ports,
        })
    }

    /// Whether the set was made of these handles, in this order.
    pub(crate) fn is_of<T>(&self, handles: &[*const T]) -> bool {
        let addresses = handles.iter().map(|handle| handle.addr());
        self.handles.iter().copied().eq(addresses)
    }
}
