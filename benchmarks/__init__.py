"""Benchmarks of titin beside its rivals: one question per module. Titin and the rival are timed in turn in the same
run."""
