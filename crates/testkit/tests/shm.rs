//! The contract of carriers through shared memory, and what is particular to it.

use titin_testkit::{Pair, conformance};

conformance!(Pair::shm);
