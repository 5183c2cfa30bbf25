"""Installing a pack: in a disposable container, from a lock with every digest, no install script run.

npm packages come over the registry mirror's socket. Python packages are downloaded on this machine by pip as it
is set up here (wheels only: nothing of them runs), and unpacked in a container without any network; a package that
comes as source only is built there (`sources.py`).
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench.atomic import sync_folder, write_json
from bench.errors import CdbError, InfraError, UsageError
from bench.tree import digest, list_tree
from sandboxes import forward
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.images import image_tag
from sandboxes.mirror import MOUNTED_AT as MIRROR
from sandboxes.mirror import SOCKET, Mirror
from sandboxes.packs.recipe import RECIPES, Recipe, cpu, find_recipe
from sandboxes.packs.sources import fetch, read_lock
from sandboxes.packs.store import MOUNTED_AT as PACKS
from sandboxes.packs.store import RECORD, TREE, Pack, PackRecord, find_pack, installing, packs_folder, remove_pack
from sandboxes.sandbox import GIB, HOME, WORKSPACE, Exec, Limits, Mount, Sandbox, SandboxSpec, TreePolicy

PORT = 4873
WHEELS = "/wheels"
_DOWNLOAD_S = 900.0
_INSTALL_S = 600.0
_CHECK_S = 120.0
_LIMITS = Limits(memory_bytes=6 * GIB, pids=1024, workspace_bytes=3 * GIB, home_bytes=1 * GIB, tmp_bytes=2 * GIB)
_POLICY = TreePolicy(max_bytes=3 * GIB, max_files=200_000)
_NPM = {
    "npm_config_registry": f"http://127.0.0.1:{PORT}/",
    "npm_config_cache": "/tmp/npm",
    "npm_config_ignore_scripts": "true",
    "npm_config_replace_registry_host": "always",
    "npm_config_fetch_timeout": "300000",
    "npm_config_fetch_retries": "0",  # the mirror tries again by itself
}
Progress = Callable[[str], None]


class Installed(NamedTuple):
    """What became of several: packs, and for each name that cannot run here the reason."""

    installed: tuple[Pack, ...]
    skipped: dict[str, str]


def install_all(names: Sequence[str], progress: Progress, *, again: bool = False) -> Installed:
    """Install several; `all` means every one, and then what cannot run here is skipped with its reason.

    Raises UsageError for an unknown name, and for one that was asked for by name and cannot run here.
    """
    if list(names) != ["all"]:
        recipes = [find_recipe(name) for name in names]
        return Installed(tuple(install(recipe, progress, again=again) for recipe in recipes), {})
    skipped = {name: reason for name, recipe in RECIPES.items() if (reason := unsuitable(recipe))}
    chosen = [recipe for name, recipe in RECIPES.items() if name not in skipped]
    return Installed(tuple(install(recipe, progress, again=again) for recipe in chosen), skipped)


def install(recipe: Recipe, progress: Progress, *, again: bool = False) -> Pack:
    """The installed pack of `recipe`, installed now when it is not yet (or `again`).

    Nothing half-installed is ever seen: a pack appears by rename. Downloads are kept in the caches of mirror and
    pip, so that an interrupted installation goes on where it was. Raises UsageError where this machine cannot run
    it, InfraError when registry or engine fail.
    """
    reason = unsuitable(recipe)
    if reason:
        raise UsageError(f"{recipe.name} cannot be installed here: {reason}")
    with installing(recipe) as staged:
        found = None if again else find_pack(recipe)
        if found:
            progress(f"{recipe.name} {recipe.version} is installed already")
            return found
        progress(f"installing {recipe.name} {recipe.version} ({recipe.package})")
        tree = staged / TREE
        _install_npm(recipe, tree) if recipe.kind == "npm" else _install_pip(recipe, tree)
        record = _record(recipe, tree)
        write_json(staged / RECORD, record.model_dump(mode="json", by_alias=True))
        remove_pack(recipe)
        staged.rename(packs_folder() / recipe.key)
        sync_folder(packs_folder())
    pack = find_pack(recipe)
    assert pack is not None
    progress(f"{recipe.name}: {record.files} files, {record.size_bytes / 1e6:.0f} MB, {record.digest}")
    return pack


def unsuitable(recipe: Recipe) -> str:
    """Why a command line cannot run in the solver image; empty when it can."""
    if recipe.python is None:
        return ""
    look = f"command -v {recipe.interpreter} > /dev/null || python3 -V"
    with DockerSandbox(_spec(recipe, [])) as box, tempfile.TemporaryDirectory(prefix="cdb-pack-") as scratch:
        has = _text(_ended(box, ["bash", "-c", look], Path(scratch), {}).stdout).strip()
    return f"it needs Python {'.'.join(map(str, recipe.python))} and the solver image has {has}" if has else ""


def _install_npm(recipe: Recipe, tree: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="cdb-pack-") as scratch,
        Mirror(log=Path(scratch) / "mirror.jsonl") as mirror,
        DockerSandbox(_spec(recipe, [mirror.mount()])) as box,
    ):
        programs = Path(scratch) / "programs"
        programs.mkdir()
        shutil.copyfile(str(forward.__file__), programs / "forward.py")
        box.put_tree(programs, HOME)
        box.put_tree(recipe.lock, WORKSPACE)
        argv = ["python3", "-I", f"{HOME}/forward.py", "--port", str(PORT), "--socket", f"{MIRROR}/{SOCKET}"]
        box.spawn(argv, cwd="/", log="/tmp/forward.log")
        ended = _ended(box, ["npm", "ci", "--no-audit", "--no-fund", "--no-progress"], Path(scratch), _NPM)
        if not ended.ok:
            away = [entry.note for entry in mirror.entries("") if entry.marker]
            raise InfraError(_failed(recipe, "npm ci", ended, away))
        box.get_tree(WORKSPACE, tree, _POLICY)


def _install_pip(recipe: Recipe, tree: Path) -> None:
    pinned = read_lock(recipe.lock / "requirements.lock")
    with tempfile.TemporaryDirectory(prefix="cdb-pack-") as scratch:
        wheels = Path(scratch) / "wheels"
        wheels.mkdir(mode=0o755)
        Path(scratch).chmod(0o755)
        lock = Path(scratch) / "requirements.lock"
        lock.write_text("".join(one.text for one in pinned if one.name not in recipe.sources), encoding="utf-8")
        if lock.stat().st_size:
            _download(recipe, lock, wheels)
        sources = fetch([one for one in pinned if one.name in recipe.sources], wheels)
        with DockerSandbox(_spec(recipe, [Mount(wheels, WHEELS)])) as box:
            _put_together(box, recipe, lock, sources, Path(scratch))
            box.get_tree(WORKSPACE, tree, _POLICY)


def _put_together(box: Sandbox, recipe: Recipe, lock: Path, sources: list[str], scratch: Path) -> None:
    """Unpack the wheels, build what came as source, and compile, all without a network. Raises InfraError."""
    programs = scratch / "programs" / "bin"
    programs.mkdir(parents=True)
    starter = programs / Path(recipe.program).name
    assert recipe.launcher is not None  # every pack of Python packages has one
    launcher = recipe.launcher.read_text(encoding="utf-8")
    starter.write_text(launcher.replace("python3 -I", f"{recipe.interpreter} -I", 1), encoding="utf-8")
    starter.chmod(0o755)
    shutil.copyfile(lock, programs.parent / lock.name)
    box.put_tree(programs.parent, WORKSPACE)
    site, built = f"{WORKSPACE}/site", "/tmp/built"
    pip = ["python3", "-m", "pip", "-q", "install", "--no-index", "--no-deps", "--no-compile", "--target", site]
    if recipe.python:
        pip += ["--only-binary", ":all:", "--python-version", ".".join(map(str, recipe.python))]
    build = ["python3", "-m", "pip", "-q", "wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", built]
    steps = [[*pip, "--require-hashes", "--find-links", WHEELS, "-r", f"{WORKSPACE}/{lock.name}"]]
    if not lock.stat().st_size:
        steps = []
    if sources:
        steps += [[*build, *(f"{WHEELS}/{name}" for name in sources)], [*pip, "--find-links", built, *recipe.sources]]
    for argv in steps:
        ended = _ended(box, argv, scratch, {"PIP_CACHE_DIR": "/tmp/pip", "PIP_NO_INPUT": "1"})
        if not ended.ok:
            raise InfraError(_failed(recipe, " ".join(argv[2:5]), ended, []))
    compile_all = [recipe.interpreter, "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
    compile_all += ["-s", WORKSPACE, "-p", f"{PACKS}/{recipe.name}", site]
    _ended(box, compile_all, scratch, {})  # a file that does not compile is compiled by nobody


def _download(recipe: Recipe, lock: Path, target: Path) -> None:
    major, minor = recipe.python or (3, 11)
    argv = [*_pip(), "download", "--no-deps", "--require-hashes", "--only-binary", ":all:", "-q", "-d", str(target)]
    argv += ["--python-version", f"{major}.{minor}", "--implementation", "cp", "-r", str(lock)]
    machine = {"x64": "x86_64", "arm64": "aarch64"}[cpu()]
    for name in ("manylinux_2_36", "manylinux_2_35", "manylinux_2_34", "manylinux_2_31", "manylinux_2_28",
                 "manylinux_2_27", "manylinux_2_24", "manylinux_2_17", "manylinux2014", "manylinux_2_12",
                 "manylinux2010", "manylinux_2_5", "manylinux1"):  # fmt: skip
        argv += ["--platform", f"{name}_{machine}"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_DOWNLOAD_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise InfraError(
            f"downloading {recipe.name} took over {_DOWNLOAD_S:.0f} s; run it again, it goes on"
        ) from error
    if done.returncode:
        raise InfraError(f"pip could not download what {recipe.name} needs: {done.stderr.strip()[-1500:]}")


def _pip() -> list[str]:
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if found := shutil.which("pip3"):
        return [found]
    raise InfraError("no pip is on this machine, which Python command lines are downloaded with; install one")


def _record(recipe: Recipe, tree: Path) -> PackRecord:
    """Try the pack as a trial will see it, and describe it. Raises CdbError when it does not start."""
    if not (tree / recipe.executable).exists():
        raise CdbError(f"{recipe.name} {recipe.version} was installed, but it has no {recipe.executable}")
    tree.chmod(0o755)
    entries = list_tree(tree)
    record = PackRecord(
        name=recipe.name,
        package=recipe.package,
        version=recipe.version,
        digest=digest(entries),
        files=len(entries),
        size_bytes=sum(int(entry.get("size", 0)) for entry in entries),
        image=image_tag("solver"),
        said="",
        installed_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    tried = Pack(recipe, tree.parent, record)
    with DockerSandbox(_spec(recipe, [tried.mount])) as box, tempfile.TemporaryDirectory(prefix="cdb-pack-") as out:
        ended = _ended(box, [tried.program, *recipe.check], Path(out), {"TERM": "dumb"}, deadline_s=_CHECK_S)
        said = _text(ended.stdout).strip() or _text(ended.stderr).strip()
        if not ended.ok:
            raise CdbError(_failed(recipe, " ".join(recipe.check), ended, []))
    return record.model_copy(update={"said": said.splitlines()[0][:200] if said else ""})


def _spec(recipe: Recipe, mounts: list[Mount]) -> SandboxSpec:
    return SandboxSpec("builder", image_tag("solver"), run=f"install-{recipe.name}", limits=_LIMITS, mounts=mounts)


def _ended(box: Sandbox, argv: list[str], scratch: Path, env: dict[str, str], deadline_s: float = _INSTALL_S) -> Exec:
    return box.exec(
        argv, deadline_s=deadline_s, env=env, stdout=scratch / "stdout.log", stderr=scratch / "stderr.log"
    )


def _failed(recipe: Recipe, what: str, ended: Exec, more: list[str]) -> str:
    how = "did not end in time" if ended.timed_out else f"ended with {ended.exit_code}"
    tail = "; ".join([*more[-3:], (_text(ended.stderr).strip() or _text(ended.stdout).strip())[-1500:]])
    return f"{recipe.name} {recipe.version}: `{what}` {how}: {tail}"


def _text(path: Path | None) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path and path.is_file() else ""
