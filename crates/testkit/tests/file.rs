//! The contract of carriers through a folder, and what is particular to it.

use titin_testkit::{Pair, conformance};

conformance!(Pair::file);
