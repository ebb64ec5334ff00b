//! Timelines.

use crate::description::Model;
use crate::network::Network;

pub(crate) fn of_network(_network: &mut Network, _root: &Model, _matching: &[(String, &Model)]) {}
