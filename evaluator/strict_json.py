"""Strict JSON for the evaluator's files: `bench.strict_json`, which both sides read outside data with."""

from bench.strict_json import parse_json, read_json

__all__ = ["parse_json", "read_json"]
