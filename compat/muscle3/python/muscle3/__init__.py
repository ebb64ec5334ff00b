"""The commands and components that come with MUSCLE3, over titin."""
