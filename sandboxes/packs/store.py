"""Installed packs: where they lie, what they hold, and whether they are still what was installed."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.cache import cache_folder
from bench.errors import DataError, UsageError
from bench.tree import digest, list_tree
from sandboxes.packs.recipe import Recipe, find_recipe
from sandboxes.sandbox import Mount

MOUNTED_AT = "/opt/agents"
TREE = "tree"
RECORD = "pack.json"


class PackRecord(BaseModel):
    """`pack.json`: what was installed. `digest` is a cdb.tree/1 digest of the folder `tree` beside it."""

    model_config = ConfigDict(extra="forbid")
    schema_: Literal["cdb.pack/1"] = Field("cdb.pack/1", alias="schema")
    name: str
    package: str
    version: str
    digest: str
    files: int
    size_bytes: int
    image: str
    """The image it was installed and tried in."""
    said: str
    """First line it printed when it was tried."""
    installed_at: str


@dataclass(frozen=True)
class Pack:
    """An installed command line."""

    recipe: Recipe
    folder: Path
    record: PackRecord

    @property
    def root(self) -> str:
        """Where its tree lies in a container."""
        return f"{MOUNTED_AT}/{self.recipe.name}"

    @property
    def program(self) -> str:
        return f"{self.root}/{self.recipe.executable}"

    @property
    def mount(self) -> Mount:
        return Mount(self.folder / TREE, self.root)

    def check(self) -> None:
        """Compare the tree with its record. Raises DataError when something in it is not what was installed."""
        if digest(list_tree(self.folder / TREE)) != self.record.digest:
            raise DataError(
                f"the installed {self.recipe.name} in {self.folder} is not what was installed; "
                f"install it again with `cdb agents install {self.recipe.name} --again`"
            )

    def describe(self) -> dict[str, str]:
        """For a run's lock."""
        return {"package": self.record.package, "version": self.record.version, "digest": self.record.digest}


def packs_folder() -> Path:
    return cache_folder("agents")


def find_pack(recipe: Recipe) -> Pack | None:
    """The installed pack of exactly this recipe, or None. Raises DataError when its record cannot be read."""
    folder = packs_folder() / recipe.key
    path = folder / RECORD
    if not path.is_file():
        return None
    try:
        return Pack(recipe, folder, PackRecord.model_validate_json(path.read_bytes()))
    except ValidationError as error:
        raise DataError(f"{path} cannot be understood ({error}); remove {folder} and install it again") from error


def need_pack(name: str) -> Pack:
    """The installed pack of `name`. Raises UsageError with the command that installs it."""
    pack = find_pack(find_recipe(name))
    if pack is None:
        raise UsageError(f"{name} is not installed; install it once with `cdb agents install {name}`")
    return pack


def remove_pack(recipe: Recipe) -> None:
    shutil.rmtree(packs_folder() / recipe.key, ignore_errors=True)


@contextmanager
def installing(recipe: Recipe) -> Iterator[Path]:
    """A fresh folder to install into, beside the final one; only one process at a time installs a name.

    What a killed installation left is removed. The caller renames the folder when the pack is whole.
    """
    folder = packs_folder()
    with (folder / f".{recipe.name}.lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        staged = folder / f".{recipe.name}.new"
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir()
        try:
            yield staged
        finally:
            shutil.rmtree(staged, ignore_errors=True)
