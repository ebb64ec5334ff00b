//! The reason why extents or bounds cannot be.

/// Extents or bounds that no array can have. The text says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);
