"""What `scripts/measure` measures, one module a name."""
