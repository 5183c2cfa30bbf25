"""Packs of command lines: whole or not there, exactly what the lock says, and no script of theirs run."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_index import Index, serving, source_archive
from fake_registry import Registry, running

from bench.errors import DataError, InfraError, UsageError
from sandboxes.packs import install as install_module
from sandboxes.packs import recipe as recipes
from sandboxes.packs.install import install, install_all, unsuitable
from sandboxes.packs.recipe import RECIPES, Recipe, find_recipe
from sandboxes.packs.sources import read_lock
from sandboxes.packs.store import find_pack, installing, need_pack, packs_folder

TOOL = '#!/bin/sh\nif [ "$1" = --version ]; then echo tool 1.0.0; fi\n'
RECIPE = Recipe("tool", "npm", "tool", "1.0.0", "node_modules/tool/tool.sh", check=("--version",))


@pytest.fixture(autouse=True)
def own_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """A registry with the tool, and its lock in the place of ours; an install script would leave a mark."""
    served = Registry()
    with running(served):
        content = served.add(
            "tool", "1.0.0", {"tool.sh": TOOL}, bin={"tool": "tool.sh"}, scripts={"postinstall": "touch marked"}
        )
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
        lock = tmp_path / "locks" / "tool"
        lock.mkdir(parents=True)
        told = {"private": True, "dependencies": {"tool": "1.0.0"}}
        (lock / "package.json").write_text(json.dumps(told))
        packages = {
            "": {"dependencies": {"tool": "1.0.0"}},
            "node_modules/tool": {
                "version": "1.0.0", "integrity": integrity, "hasInstallScript": True, "bin": {"tool": "tool.sh"},
            },
        }  # fmt: skip
        (lock / "package-lock.json").write_text(
            json.dumps({"lockfileVersion": 3, "requires": True, "packages": packages})
        )
        monkeypatch.setattr(recipes, "LOCKS", tmp_path / "locks")
        monkeypatch.setenv("CDB_NPM_REGISTRY", served.address)
        yield served


@pytest.mark.docker
def test_a_pack_is_installed_once_and_described(registry: Registry) -> None:
    said: list[str] = []
    pack = install(RECIPE, said.append)
    assert pack.record.said == "tool 1.0.0"
    assert not list((pack.folder / "tree").rglob("marked"))  # the install script never ran
    assert pack.mount.target == "/opt/agents/tool"
    assert pack.mount.read_only
    assert os.access(pack.folder / "tree" / RECIPE.executable, os.X_OK)
    pack.check()
    asked = len(registry.asked)
    assert install(RECIPE, said.append).record == pack.record
    assert len(registry.asked) == asked
    assert said[-1] == "tool 1.0.0 is installed already"

    (pack.folder / "tree" / RECIPE.executable).write_text("#!/bin/sh\nevil\n")
    with pytest.raises(DataError, match="cdb agents install tool --again"):
        pack.check()
    install(RECIPE, said.append, again=True).check()


@pytest.mark.docker
def test_what_is_not_what_the_lock_says_is_not_installed(registry: Registry) -> None:
    registry.spoil_tarballs = True
    with pytest.raises(InfraError, match=r"tool 1\.0\.0: `npm ci`"):
        install(RECIPE, lambda _line: None)
    assert find_pack(RECIPE) is None
    assert [path.name for path in packs_folder().iterdir()] == [".tool.lock"]


@pytest.mark.docker
def test_a_registry_that_is_away_is_named_and_the_next_try_goes_on(registry: Registry) -> None:
    registry.answer_with = 503
    with pytest.raises(InfraError, match="503"):
        install(RECIPE, lambda _line: None)
    registry.answer_with = None
    assert install(RECIPE, lambda _line: None).record.version == "1.0.0"


@pytest.mark.docker
def test_a_package_that_comes_as_source_only_is_built_in_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = (
        "import pathlib, setuptools\npathlib.Path('/tmp/ran').write_text('x')\n"
        "setuptools.setup(name='src-tool', version='1.0', py_modules=['src_tool'],"
        " entry_points={'console_scripts': ['srctool=src_tool:main']})\n"
    )
    content = source_archive(
        "src_tool", "1.0", {"setup.py": setup, "src_tool.py": "def main(): print('built 1.0')\n"}
    )
    lock = tmp_path / "locks" / "srctool" / "requirements.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(f"# made by hand\nsrc-tool==1.0 \\\n    --hash=sha256:{hashlib.sha256(content).hexdigest()}\n")
    monkeypatch.setattr(recipes, "LOCKS", tmp_path / "locks")
    recipe = Recipe("srctool", "pip", "src-tool", "1.0", "bin/srctool", python=(3, 11), sources=("src-tool",))
    with serving(Index()) as index:
        monkeypatch.setenv("CDB_PIP_INDEX", f"{index.address}/simple")
        index.files["src-tool"] = {"src_tool-1.0.tar.gz": content}
        pack = install(recipe, lambda _line: None)
    assert pack.record.said == "built 1.0"
    assert (pack.folder / "tree/bin/srctool").read_text().startswith("#!/usr/bin/env -S python3.11 -I")
    assert not Path("/tmp/ran").exists()  # nothing of it ran on this machine


def test_a_lock_is_read_entry_by_entry() -> None:
    pinned = {one.name: one for one in read_lock(RECIPES["openhands"].lock / "requirements.lock")}
    assert len(pinned) > 150
    assert RECIPES["openhands"].sources == ("func-timeout",)
    assert len(pinned["func-timeout"].hashes) == 1
    assert all(one.hashes for one in pinned.values())


@pytest.mark.docker
def test_a_python_that_is_not_there_is_a_reason_not_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = unsuitable(RECIPES["openhands"])
    assert reason.startswith("it needs Python 3.12 and the solver image has Python 3.")
    assert unsuitable(replace(RECIPES["openhands"], python=(3, 11))) == ""
    monkeypatch.setattr(install_module, "RECIPES", {"openhands": RECIPES["openhands"]})
    assert install_all(["all"], lambda _line: None) == ((), {"openhands": reason})
    with pytest.raises(UsageError, match=r"needs Python 3\.12"):
        install_all(["openhands"], lambda _line: None)


def test_a_killed_installation_leaves_nothing_that_is_taken_for_a_pack(tmp_path: Path) -> None:
    recipe = RECIPES["codex"]
    with pytest.raises(KeyboardInterrupt), installing(recipe) as staged:
        (staged / "tree").mkdir()
        raise KeyboardInterrupt
    left = packs_folder() / ".codex.new" / "tree"
    left.mkdir(parents=True)  # as a SIGKILL leaves it
    assert find_pack(recipe) is None
    with installing(recipe) as staged:
        assert list(staged.iterdir()) == []


def test_a_name_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="claude-code"):
        find_recipe("claude")
    with pytest.raises(UsageError, match="cdb agents install codex"):
        need_pack("codex")
    folder = packs_folder() / RECIPES["codex"].key
    folder.mkdir()
    (folder / "pack.json").write_text("{")
    with pytest.raises(DataError, match="install it again"):
        find_pack(RECIPES["codex"])


def test_every_lock_pins_every_file_and_names_no_registry() -> None:
    for recipe in RECIPES.values():
        for path in recipe.lock.iterdir():
            text = path.read_text()
            assert "resolved" not in text, path
            assert recipe.version in text
            if path.name == "requirements.lock":
                names = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
                assert text.count("--hash=sha256:") >= len(names)
                assert not any(version in text for version in ("litellm==1.82.7", "litellm==1.82.8"))  # C131
            elif path.name == "package-lock.json":
                packages = {name: told for name, told in json.loads(text)["packages"].items() if name}
                assert all(told.get("integrity", "").startswith("sha512-") for told in packages.values())
