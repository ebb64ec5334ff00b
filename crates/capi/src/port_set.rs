//! Sets of ports. A program receives from any port of a set.

use std::collections::HashMap;
use std::sync::Arc;

use titin_runtime::{Instance, PortChoice, PortId, Result};

/// Ports of an instance. Programs give the same ports with every call, so the instance keeps the
/// set of the last call.
pub(crate) struct PortSet {
    /// Addresses of the port handles, in the order of the program's list.
    handles: Vec<usize>,
    pub(crate) choice: Arc<PortChoice>,
    /// For each port the index in the program's list, and whether the port has slots.
    pub(crate) ports: HashMap<PortId, (usize, bool)>,
}

impl PortSet {
    /// The set of the ports `handles`. `ids` are the ports' ids.
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

    /// Whether the set was made of `handles`, in the same order.
    pub(crate) fn is_of<T>(&self, handles: &[*const T]) -> bool {
        let addresses = handles.iter().map(|handle| handle.addr());
        self.handles.iter().copied().eq(addresses)
    }
}
