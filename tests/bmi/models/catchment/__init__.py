"""The models of docs/bmi.md."""
