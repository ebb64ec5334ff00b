"""Benchmarks of titin next to its rivals: one question per module, both timed in turn in the same run."""
