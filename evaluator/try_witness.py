"""Tries witnesses on an application folder in a local Chromium: a tool for people who write sample cases.

    python -m evaluator.try_witness FOLDER witnesses.json [--criterion N] [--patch P] [--vacuity]

`changed` and `unchanged` compare with FOLDER as it is, without the patch.
No container is involved, so only run applications you trust. FOLDER is copied first and never changed.
An application with a build script in its package.json is built by npm in the copy and its `dist` (or
`build`) is served; anything else is served as it is. Chromium is CDB_CHROMIUM or the one on the PATH.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import sync_playwright

from bench.errors import CdbError, UsageError
from evaluator.browser import AppBrowser
from evaluator.records import Purpose, Replay
from evaluator.replay import run_witness
from evaluator.replay.inside import teach
from evaluator.static_server import StaticServer, make_site
from evaluator.witness import Witness, WitnessError, load_witness

CHROMIUM_ARGS = ["--disable-background-networking", "--disable-component-update", "--no-first-run"]
_BUILD_S = 300


class Entry(NamedTuple):
    """One witness of a file: which criterion and sub-requirement it is for."""

    criterion: int
    sub: str
    witness: Witness


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 when every run came out as wanted, 1 when one did not, 2 for bad arguments."""
    options = _arguments(argv)
    try:
        entries = read_entries(options.witnesses, options.criterion)
        with tempfile.TemporaryDirectory(prefix="cdb-try-") as folder:
            root = prepare(options.folder, Path(folder) / "app", options.patch)
            start = None
            if any(entry.witness.compares_with_start for entry in entries):
                start = prepare(options.folder, Path(folder) / "start")
            return _run_all(root, entries, vacuity=options.vacuity, frames=options.frames, start=start)
    except CdbError as error:
        print(error, file=sys.stderr)
        return 2


def read_entries(file: Path, criterion: int | None = None) -> list[Entry]:
    """The witnesses in `file`, of all criteria or of one; a bare witness counts as criterion 0.

    Raises UsageError or WitnessError, which names every bad witness."""
    try:
        content: Any = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} is no witness file: {error}") from None
    listed = content.get("witnesses", [{"witness": content}]) if isinstance(content, dict) else content
    entries, bad = [], []
    for one in listed:
        number, sub = int(one.get("criterion_index", 0)), str(one.get("sub", ""))
        try:
            entries.append(Entry(number, sub, load_witness(one["witness"])))
        except (WitnessError, KeyError) as error:
            bad.append(f"criterion {number}{sub}: {error}")
    if bad:
        raise WitnessError("\n".join(bad))
    chosen = [entry for entry in entries if criterion in (None, entry.criterion)]
    if not chosen:
        raise UsageError(f"{file} holds no witness for criterion {criterion}")
    return chosen


def prepare(source: Path, copy: Path, patch: Path | None = None) -> Path:
    """Copy the application, patch and build the copy; returns the folder to serve. Raises UsageError."""
    if not source.is_dir():
        raise UsageError(f"{source} is no folder")
    shutil.copytree(source, copy, symlinks=True)
    if patch is not None and patch.stat().st_size:
        # --unsafe-paths is not given: git refuses patches that reach outside. GIT_DIR keeps it from using
        # a repository that happens to lie above the copy.
        env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(copy.parent)}
        _run(["git", "apply", "--whitespace=nowarn", str(patch.resolve())], copy, env)
    package = copy / "package.json"
    if not package.is_file() or "build" not in json.loads(package.read_text()).get("scripts", {}):
        return copy
    if not (copy / "node_modules").is_dir():
        command = "ci" if (copy / "package-lock.json").is_file() else "install"
        _run(["npm", command, "--no-audit", "--no-fund", "--ignore-scripts"], copy)
    _run(["npm", "run", "build"], copy)
    for name in ("dist", "build"):
        if (copy / name).is_dir():
            return copy / name
    raise UsageError("the build left neither dist nor build")


def _run(command: list[str], folder: Path, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=_BUILD_S, check=False)
    if done.returncode:
        raise UsageError(f"{' '.join(command[:3])} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


@contextmanager
def serve(root: Path) -> Iterator[str]:
    """Serve a folder on a free local port; yields its address."""
    with StaticServer(make_site(root, spa=False), 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@contextmanager
def local_browser(address: str) -> Iterator[AppBrowser]:
    """A Chromium of this machine, without its own sandbox when we are root. Raises UsageError."""
    chromium = os.environ.get("CDB_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise UsageError("no Chromium found: install the package chromium or set CDB_CHROMIUM to its path")
    with sync_playwright() as playwright:
        teach(playwright)
        browser = playwright.chromium.launch(
            executable_path=chromium, chromium_sandbox=os.geteuid() != 0, args=CHROMIUM_ARGS
        )
        try:
            yield AppBrowser(browser, address)
        finally:
            browser.close()


def _readings(
    browser: AppBrowser, start: str | None, witness: Witness, inputs: dict[str, str]
) -> dict[str, str] | None:
    """What FOLDER as it is shows at the steps that compare with the start."""
    if start is None or not witness.compares_with_start:
        return None
    before = AppBrowser(browser.browser, start)
    return run_witness(
        before, witness, app="start", purpose="vacuity", inputs=inputs, frames_dir=None, results_root=Path()
    ).readings


def _run_all(
    root: Path, entries: list[Entry], *, vacuity: bool, frames: Path | None, start: Path | None = None
) -> int:
    unwanted = 0
    with ExitStack() as stack:
        browser = stack.enter_context(local_browser(stack.enter_context(serve(root))))
        unpatched = stack.enter_context(serve(start)) if start else None
        for entry in entries:
            for number, inputs in enumerate([{}, *entry.witness.vary]):
                purpose: Purpose = "vacuity" if vacuity else "vary" if number else "propose"
                folder = frames / f"{entry.criterion:02d}{entry.sub}" / str(number) if frames else None
                replay = run_witness(
                    browser,
                    entry.witness,
                    app="start" if vacuity else "submission",
                    purpose=purpose,
                    inputs=inputs,
                    frames_dir=folder,
                    results_root=frames or root,
                    reference=_readings(browser, unpatched, entry.witness, inputs),
                )
                unwanted += replay.outcome != ("failed" if vacuity else "held")
                _print(entry, replay, number)
    print("all as wanted" if not unwanted else f"{unwanted} not as wanted")
    return 1 if unwanted else 0


def _print(entry: Entry, replay: Replay, number: int) -> None:
    which = f"{entry.criterion:>3}{entry.sub:<3} {f'vary {number}' if number else 'base':<7}"
    print(f"{which} {replay.outcome:<7} {replay.duration_s:6.2f} s  {replay.reason}")
    if replay.outcome != "held":
        for line in replay.console[-3:]:
            print(f"      console {line}")
        for address in replay.refused_requests[:3]:
            print(f"      refused {address}")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="evaluator.try_witness", description="Try witnesses on a folder.")
    parser.add_argument("folder", type=Path, help="the application; it is copied, not changed")
    parser.add_argument("witnesses", type=Path, help="a case's witnesses.json, or one witness")
    parser.add_argument("--criterion", type=int, help="only this criterion")
    parser.add_argument("--patch", type=Path, help="git patch to apply to the copy first")
    parser.add_argument("--vacuity", action="store_true", help="every witness must fail (the start application)")
    parser.add_argument("--frames", type=Path, help="keep a picture of every step in this folder")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
