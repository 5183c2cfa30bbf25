"""Agents' command lines, installed once, pinned, and mounted read-only into containers."""
