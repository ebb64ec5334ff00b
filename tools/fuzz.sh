#!/usr/bin/env bash
# Every decoder against random bytes, 60 seconds each (or as many as FUZZ_SECONDS says).
#
# What makes a target fail is kept under fuzz/artifacts; put it into the target's corpus, so that the tests run it.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=${FUZZ_SECONDS:-60}
target=${CARGO_TARGET_DIR:-$PWD/../target}/fuzz

cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz
for name in $(cargo fuzz list --fuzz-dir .); do
    corpus=(corpus/"$name")
    [ "$name" != description ] || corpus+=(../tests/model/corpus/good ../tests/model/corpus/bad)
    found=$target/found/$name
    mkdir -p "$found"
    echo "fuzz: $name, $seconds s"
    # Nothing here is unsafe, so no sanitizer is needed, and without one any Rust will do. Memory that is asked for is
    # not memory that is used.
    cargo fuzz run --fuzz-dir . --target-dir "$target" --sanitizer none "$name" "$found" "${corpus[@]}" \
        -- -max_total_time="$seconds" -malloc_limit_mb=0 -verbosity=0 -print_final_stats=1 \
        2>&1 | { grep -vE "# Uses:|ecommended dictionary|NEW_FUNC" || true; }
done
