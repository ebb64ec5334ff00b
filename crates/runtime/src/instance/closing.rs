//! How far the closing of an instance has come, for a call that is made again.

/// How far the closing of an instance has come.
#[derive(Default)]
pub(super) struct Closing {
    /// When the call began, for the profile.
    pub(super) began: Option<i64>,
    /// How many receivers know of the end of their streams.
    pub(super) told: usize,
    /// Warnings for the log about dropped messages, once known.
    pub(super) dropped: Option<Vec<String>>,
    /// Receiving ends, by number, with senders that have not ended.
    pub(super) open: Vec<usize>,
    /// Whether the rank above was told how often fields were sent and received.
    pub(super) told_steps: bool,
    /// Whether this rank has compared its counts with the counts of the ranks below.
    pub(super) compared_steps: bool,
    /// How many receivers hold all messages sent to them.
    pub(super) settled: usize,
    /// Whether the manager was told.
    pub(super) said: bool,
}
