"""Agents, judges and runs as YAML; a package only so that an installed copy can find them."""
