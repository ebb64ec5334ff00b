//! Why a program may not join as an instance. Each printed error says how to go on.

use titin_model::Operator;

/// The most ranks of an instance: the conduits between ranks are numbered.
pub(super) const MOST_RANKS: u32 = 1 << 20;

/// The advice if ranks of a program join one by one.
const ONE_PROGRAM: &str = "If they are ranks of one parallel program, open the instance with their communicator, and start them \
                           with the launcher of their MPI, which would give it more than one rank";

/// Why a program may not join.
#[derive(Debug, thiserror::Error)]
pub(super) enum JoinError {
    #[error("no instance was named: set TITIN_INSTANCE, or give a name when opening{hint}")]
    NoName { hint: String },
    #[error(
        "the model {model} has no instance {name}{hint} (TITIN_INSTANCE, or MUSCLE_INSTANCE, says which instance a program is)"
    )]
    NoSuchInstance {
        model: String,
        name: String,
        hint: String,
    },
    #[error("the run has failed already ({culprit})")]
    RunFailed { culprit: String },
    #[error(
        "process {} on {} takes part as {name} already, so process {} on {} cannot. {ONE_PROGRAM}; if not, give \
         each its own TITIN_INSTANCE", .joined.0, .joined.1, .refused.0, .refused.1
    )]
    AlreadyJoined {
        name: String,
        /// The process that has joined, and its host.
        joined: (u32, String),
        /// The process that asks to join, and its host.
        refused: (u32, String),
    },
    #[error(
        "{name} has taken part and closed already. {ONE_PROGRAM}; if not, open the instance once, and use reuse() \
         to be called several times"
    )]
    AlreadyClosed { name: String },
    #[error("{name} has taken part already and was lost: {why}")]
    WasLost { name: String, why: String },
    #[error("{ranks} ranks, at most {MOST_RANKS} in an instance, and 2000 times that in a run")]
    TooManyRanks { ranks: u32 },
    #[error(transparent)]
    Ports(#[from] PortMismatch),
}

impl JoinError {
    /// Whether the program or the description must be corrected before the program can join.
    pub(super) fn is_lasting(&self) -> bool {
        matches!(
            self,
            JoinError::AlreadyJoined { .. } | JoinError::AlreadyClosed { .. } | JoinError::Ports(_)
        )
    }
}

/// The difference between the ports that a program declares and the ports of the description.
#[derive(Debug, thiserror::Error)]
pub(super) enum PortMismatch {
    #[error(
        "{name} declares its port {port} as {operator}, which is no operator: it is f_init, o_i, s or o_f"
    )]
    NoOperator {
        name: String,
        port: String,
        operator: String,
    },
    #[error(
        "{name} declares its port {port} as {declared}, but in the description it is {described} of {component}: change the one \
         or the other"
    )]
    OtherOperator {
        name: String,
        component: String,
        port: String,
        declared: Operator,
        described: Operator,
    },
    #[error(
        "the description connects {component}.{port}, but the program of {name} declares no such port; {hint}"
    )]
    NotDeclared {
        name: String,
        component: String,
        port: String,
        hint: String,
    },
    #[error(
        "{component}.{port} is joined to several instances, so the program of {name} must declare it as {port}[]"
    )]
    NoVector {
        name: String,
        component: String,
        port: String,
    },
    #[error(
        "{here} and {there} are joined, but one is declared as a vector port and the other is not: declare \
         both with [], or neither"
    )]
    OneVector { here: String, there: String },
}
