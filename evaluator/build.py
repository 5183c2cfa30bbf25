"""Builds an application in disposable containers: installed with the registry mirror only, built with nothing.

Two phases, each in a fresh container without network. The first can reach the npm mirror over its socket,
and ends with the whole workspace as one tar; the second starts from that tar alone. So whatever an
install script left running, or wrote outside the workspace, is gone before the build begins, and what the
build runs has no socket to anything. The tar passes through the host unopened.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from bench.atomic import write_bytes
from bench.errors import InfraError
from bench.tree import digest, list_tree
from evaluator.build_node import NodeFacts
from evaluator.build_phases import NPM_LOCK, BuildLimits, PhaseFailed, PhaseRecord, Workshop
from evaluator.records import Strict
from evaluator.serve_plan import ServePlan, first_page, mount_path, static_plan
from sandboxes.images import image_id
from sandboxes.mirror import Mirror

FORMAT = "cdb.build/2"
"""Part of every key: raised when a build of the same input would come out differently."""
APP = "app"
BUILT = "BUILT.json"
RESOLVED_LOCK = NPM_LOCK
"""Beside BUILT.json: what npm resolved where it had to; submissions without a lock begin with it."""
SHELL_PAGE = "200.html"
"""The page that generators write for paths without a file of their own."""
SERVED_AS_THEY_ARE = ("_attachments", "_annotations")
"""Folders of the workspace that are served with every application, built ones included."""


class BuildResult(Strict):
    """How a build ended. Kept as BUILT.json beside what was built."""

    outcome: Literal["ok", "build_failed", "infra_error"]
    code: str = ""
    """Stable name of the fault (`build_timeout`, `registry_outage`, …); empty when there is none."""
    reason: str = ""
    log_tail: str = ""
    """The useful end of the failed command's output."""
    phases: list[PhaseRecord] = Field(default_factory=list)
    lock_mismatch: bool = False
    """The lock file did not fit package.json, and the versions were resolved anew."""
    flags: list[str] = Field(default_factory=list)
    """What was done beside the plan (docs/serving.md): `lock_mismatch`, `lock_of_start`, `legacy_peer_deps`,
    `scripts_skipped`, `node_fetched`, `openssl_legacy`, `fonts_absent`, `output_elsewhere`, `page_in_sources`,
    `served_by_script`."""
    node: NodeFacts | None = None
    duration_s: float = 0.0
    reused: bool = False
    """Nothing was done: the same input had been built before."""
    key: str = ""
    """Digest of everything that decides the result: tree, plan, image."""
    plan: ServePlan
    """The plan as it turned out: output folder and base path are known only now. Serve with this one."""
    served: Path = Field(default=Path(), exclude=True)
    """What `serve` takes: the folder of files, or the one with the packed workspace."""


def build(
    plan: ServePlan,
    tree: Path,
    out: Path,
    *,
    run: str,
    case: str,
    mirror: Mirror | None,
    logs: Path,
    limits: BuildLimits | None = None,
    before: str | None = None,
    lock: Path | None = None,
) -> BuildResult:
    """Builds `tree` (never touched) into the folder `out`, or finds there what the same input gave before.

    Args:
        logs: folder for each command's output; made when there is something to write.
        before: ISO date; versions that npm has to resolve itself are those of that day.
        lock: a package-lock.json to begin with where `tree` has no lock of its own, if there is such a file: what
            was resolved for the start application. No part of the key, as little as the registry's state is.

    Failures are told by the result, InfraError of the machine included. Threads and processes that build
    into the same `out` wait for each other.
    """
    if plan.kind == "static":
        return BuildResult(outcome="ok", plan=plan, served=tree)
    began = time.monotonic()
    try:
        key = _key(plan, tree, before)
        with _only_one(out):
            kept = _kept(out, key)
            if kept:
                return kept
            with _scratch(out) as scratch:
                shop = Workshop(plan, run, case, mirror, scratch, logs, limits or BuildLimits(), before, lock)
                result = _build(shop, tree, key)
                result.duration_s = round(time.monotonic() - began, 3)
                return _keep(result, scratch, out) if result.outcome == "ok" else result
    except InfraError as error:
        return BuildResult(outcome="infra_error", code="machine", reason=str(error), plan=plan)


def _build(shop: Workshop, tree: Path, key: str) -> BuildResult:
    app = shop.scratch / APP
    result = BuildResult(outcome="ok", key=key, plan=shop.plan)
    try:
        installed = shop.install(tree) if shop.plan.install else None
        result.plan = shop.plan  # installing may have fetched another Node, with other settings
        if installed and shop.plan.start and not shop.plan.build:
            installed.rename(app)
        else:
            result.plan = shop.build(tree, installed, app)
        if not result.plan.start:
            if "page_in_sources" in shop.flags:
                _narrow(app)
            result.plan = _finished(result.plan, tree, app)
    except PhaseFailed as failed:
        result.outcome, result.code, result.reason = failed.fault
        result.log_tail = failed.tail
    result.phases, result.flags, result.node = shop.records, shop.flags, shop.node
    result.lock_mismatch = "lock_mismatch" in shop.flags
    return result


def _narrow(app: Path) -> None:
    """Leaves of a copied source tree only the folder of the page, where the page takes that for its root."""
    page = first_page(app)
    root = static_plan(app, page).root if page else "."
    if root != ".":
        inner = app.with_name("narrowed")
        (app / root).rename(inner)
        shutil.rmtree(app)
        inner.rename(app)


def _finished(plan: ServePlan, tree: Path, app: Path) -> ServePlan:
    """Adds the folders that are served as they are; reads page and base path off the built files."""
    for name in SERVED_AS_THEY_ARE:
        if (tree / name).is_dir() and not (app / name).exists():
            shutil.copytree(tree / name, app / name, symlinks=True)
    page = first_page(app)
    if page is None:
        return plan
    entry = page.parent.relative_to(app).as_posix()
    base = mount_path(app, page)
    shell = page.with_name(SHELL_PAGE)
    return plan.model_copy(
        update={
            "base_path": plan.base_path if base == "/" else base,
            "entry": "" if entry == "." else f"{entry}/",
            "index": page.name,
            "fallback_page": shell.relative_to(app).as_posix() if plan.spa_fallback and shell.is_file() else "",
        }
    )


def _key(plan: ServePlan, tree: Path, before: str | None) -> str:
    parts = [FORMAT, digest(list_tree(tree)), plan.model_dump(mode="json"), image_id("base"), before]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _kept(out: Path, key: str) -> BuildResult | None:
    try:
        result = BuildResult.model_validate_json((out / BUILT).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None
    if result.key != key or not (out / APP).is_dir():
        return None
    return result.model_copy(update={"served": out / APP, "reused": True})


def _keep(result: BuildResult, scratch: Path, out: Path) -> BuildResult:
    """Puts what was built into place: the record last, so that a kept record means a whole folder."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (scratch / APP).rename(out / APP)
    if (scratch / RESOLVED_LOCK).is_file():
        (scratch / RESOLVED_LOCK).rename(out / RESOLVED_LOCK)
    write_bytes(out / BUILT, result.model_dump_json(indent=2).encode() + b"\n")
    return result.model_copy(update={"served": out / APP})


@contextmanager
def _only_one(out: Path) -> Iterator[None]:
    """A lock beside `out`, held by one thread of one process at a time."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with (out.parent / f".{out.name}.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _scratch(out: Path) -> Iterator[Path]:
    """A folder on the same file system as `out`, readable by the container's user, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
