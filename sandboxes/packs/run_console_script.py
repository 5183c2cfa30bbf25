#!/usr/bin/env -S python3 -I
"""Starts a console script of the packages beside it, wherever the pack lies, unseen by other Python programs.

An argument `{@FILE}` stands for the content of that file: a process's own argument list has no length limit,
while the kernel refuses a single argument over 128 KiB.
"""

import sys
from importlib.metadata import entry_points
from pathlib import Path

here = Path(__file__).resolve()
sys.path.insert(0, str(here.parent.parent / "site"))
(script,) = entry_points(group="console_scripts", name=here.name)
arguments = []
for argument in sys.argv[1:]:
    named = argument[2:-1] if argument.startswith("{@") and argument.endswith("}") else ""
    arguments.append(Path(named).read_bytes().decode("utf-8", "surrogateescape") if named else argument)
sys.argv = [here.name, *arguments]
sys.exit(script.load()())
