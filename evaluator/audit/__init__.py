"""Auditing what was judged: by people who label blind, for leaks, and against another judging."""
