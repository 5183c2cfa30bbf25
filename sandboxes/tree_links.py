"""Which links of a tree that was copied out may stay: the rule of `bench.links`."""

from bench.links import why_refused

__all__ = ["why_refused"]
