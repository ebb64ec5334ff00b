#!/usr/bin/env bash
# Every decoder against random bytes, 60 seconds each (or as many as FUZZ_SECONDS says). Uses cargo-fuzz and a nightly
# Rust where both are installed, else a plainer loop that any Rust can build.
#
# What makes a target fail is kept under fuzz/artifacts; put it into the target's corpus, so that the tests run it.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}

if ! cargo fuzz --version >/dev/null 2>&1 || ! cargo +nightly --version >/dev/null 2>&1; then
    echo "fuzz: the plain loop; for coverage-guided fuzzing: rustup toolchain install nightly; cargo install cargo-fuzz"
    exec cargo run --release -p titin-testkit --example mutate -- all "$seconds"
fi

target=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
for project in fuzz crates/model/fuzz; do
    for name in $(cd "$project" && cargo fuzz list); do
        found=$target/found/$name
        mkdir -p "$found"
        echo "fuzz: $name, $seconds s"
        # Nothing here is unsafe, so no sanitizer is needed; and memory that is asked for is not memory that is used.
        (cd "$project" && cargo +nightly fuzz run --fuzz-dir . --target-dir "$target" --sanitizer none "$name" \
            "$found" "corpus/$name" -- -max_total_time="$seconds" -malloc_limit_mb=0 -verbosity=0 -print_final_stats=1 \
            2>&1 | { grep -vE "# Uses:|ecommended dictionary" || true; })
    done
done
