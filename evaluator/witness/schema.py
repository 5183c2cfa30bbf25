"""Prints the language's JSON Schema: python -m evaluator.witness.schema > docs/witness.schema.json"""

from __future__ import annotations

import json

from evaluator.witness.program import witness_schema

if __name__ == "__main__":
    print(json.dumps(witness_schema(), indent=1, sort_keys=True, ensure_ascii=False))
