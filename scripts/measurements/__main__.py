"""`scripts/measure NAME [--json]`: run one measurement and print its figures."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil

from scripts import measurements

NAMES = sorted(
    module.name for module in pkgutil.iter_modules(measurements.__path__) if not module.name.startswith("_")
)
"""Every module beside this one has a `measure()` that returns its figures by name."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/measure", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    arguments = parser.parse_args()
    figures = importlib.import_module(f"scripts.measurements.{arguments.name}").measure()
    if arguments.json:
        print(json.dumps(figures, sort_keys=True))
    else:
        for key, value in sorted(figures.items()):
            by = value if isinstance(value, dict) else {"": value}
            for part, number in by.items():
                print(f"{f'{key} {part}':<32} {number:g}")


if __name__ == "__main__":
    main()
