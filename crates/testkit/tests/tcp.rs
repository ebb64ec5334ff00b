//! The contract of carriers over tcp.

use titin_testkit::{Pair, conformance};

conformance!(Pair::tcp);
