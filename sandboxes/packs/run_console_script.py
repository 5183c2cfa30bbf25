#!/usr/bin/env -S python3 -I
"""Starts a console script of the packages beside it, wherever the pack lies, unseen by other Python programs."""

import sys
from importlib.metadata import entry_points
from pathlib import Path

here = Path(__file__).resolve()
sys.path.insert(0, str(here.parent.parent / "site"))
(script,) = entry_points(group="console_scripts", name=here.name)
sys.argv[0] = here.name
sys.exit(script.load()())
