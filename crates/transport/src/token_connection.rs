//! The connection of an agent with a token, which waits for the answer.

use titin_os::Descriptor;
use titin_wire::token::{TokenAnswer, TokenEnd};

use crate::error::LinkError;
use crate::medium::send_whole;

/// The connection of an agent with a token. The agent has proved the one-time key and has asked for the
/// way to the run.
pub struct TokenConnection {
    socket: Descriptor,
    end: TokenEnd,
}

impl TokenConnection {
    pub(crate) fn new(socket: Descriptor, end: TokenEnd) -> Self {
        TokenConnection { socket, end }
    }

    /// The number of the one-time key.
    pub fn number(&self) -> u64 {
        self.end.number()
    }

    /// Answers the agent, sealed, and closes the connection. Waits for nothing: the few bytes fit the
    /// buffer of a fresh socket.
    ///
    /// # Errors
    /// [`LinkError`] if the agent is gone.
    pub fn answer(mut self, answer: &TokenAnswer) -> Result<(), LinkError> {
        send_whole(&self.socket, &self.end.seal(answer))
    }
}
