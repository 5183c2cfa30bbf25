"""The way out of trials under `--egress frozen` and `open`: a forward proxy of our own, a process for each trial."""
