"""Attempts to get out of a container, made as real processes in one: `cdb doctor --escape-suite`."""
