"""Probes: what a refuter may have looked at, each a function that returns facts with evidence and decides nothing."""

from __future__ import annotations
