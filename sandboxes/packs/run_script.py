#!/usr/bin/env -S python3 -I
"""Runs a script with the packages beside it, unseen by other Python programs: `python SCRIPT ARGUMENTS…`.

`--check` imports the one package that the pack was made for and prints its version.
"""

import runpy
import sys
from importlib import import_module, metadata
from pathlib import Path

here = Path(__file__).resolve()
sys.path.insert(0, str(here.parent.parent / "site"))
if sys.argv[1:2] == ["--check"]:
    import_module(sys.argv[2])
    print(sys.argv[2], metadata.version(sys.argv[2]))
else:
    sys.argv = sys.argv[1:]
    sys.path.insert(1, str(Path(sys.argv[0]).resolve().parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
