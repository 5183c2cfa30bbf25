"""Runs attempts one after another, each in a process of its own: `python3 -m inside FACTS NAME…`.

FACTS is a JSON file. Prints a line of JSON for each name. An attempt that dies, hangs or raises shows nothing,
and is told as unproved: `escaped` null.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from . import files, kernel, network, processes  # noqa: F401  (they enter their attempts)
from .attempt import ATTEMPTS, Facts

_PATIENCE_S = 45.0


def _child(name: str, facts: Facts, answer: Connection) -> None:
    try:
        answer.send(tuple(ATTEMPTS[name].run(facts)))
    except Exception as error:  # noqa: BLE001  (the process's outermost edge: told as unproved)
        answer.send((None, f"the attempt itself failed: {type(error).__name__}: {error}"))


def _try(name: str, facts: Facts) -> dict[str, Any]:
    near, far = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_child, args=(name, facts, far), daemon=True)
    process.start()
    far.close()
    escaped, evidence = None, f"no answer in {_PATIENCE_S:g} s"
    try:
        if near.poll(_PATIENCE_S):
            escaped, evidence = near.recv()
    except EOFError:
        process.join()
        evidence = f"its process ended with {process.exitcode}"
    process.kill()
    return {"name": name, "escaped": escaped, "evidence": evidence}


def main(argv: list[str]) -> None:
    multiprocessing.set_start_method("fork")
    facts = json.loads(Path(argv[0]).read_text(encoding="utf-8"))
    for name in argv[1:]:
        print(json.dumps(_try(name, facts)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
