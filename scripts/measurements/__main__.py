"""`scripts/measure NAME [--json]`: run one measurement and print its figures."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from scripts.measurements import gateway, startup

MEASUREMENTS: dict[str, Callable[[], dict[str, float]]] = {
    "gateway": gateway.measure,
    "startup": startup.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/measure", description=__doc__)
    parser.add_argument("name", choices=sorted(MEASUREMENTS))
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    arguments = parser.parse_args()
    figures = MEASUREMENTS[arguments.name]()
    if arguments.json:
        print(json.dumps(figures, sort_keys=True))
    else:
        for key, value in sorted(figures.items()):
            print(f"{key:<24} {value:g}")


if __name__ == "__main__":
    main()
