"""Components that come with MUSCLE3."""
