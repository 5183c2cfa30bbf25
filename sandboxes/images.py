"""Our images by content: what is missing is built, what is there is found by the hash in its tag.

`python -m sandboxes.images` builds what is missing and prints the tags. The Dockerfiles (in the folder
`images/`) form a chain that the engine's classic builder accepts:

    base ─ desk ─┬─ solver
                 └─ browser
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from docker.errors import ImageNotFound

from bench.errors import CdbError, InfraError
from sandboxes import machine
from sandboxes.base_image import SUITE, ensure_base, find_base
from sandboxes.engine import engine
from sandboxes.image_build import build

ImageName = Literal["base", "desk", "solver", "browser"]
PARENTS: dict[ImageName, ImageName | None] = {"base": None, "desk": "base", "solver": "desk", "browser": "desk"}
"""Every image and what it stands on, parents first."""
SOURCES = Path(__file__).parent / "images"
REMEDY = "build the images: python -m sandboxes.images (scripts/demo and scripts/test do it)"


def image_tag(name: ImageName) -> str:
    """The tag of an image that is built and current. Raises InfraError with the remedy when it is not."""
    base = find_base()
    tag = _tag(name, base[1]) if base else f"cdb-{name}"
    if base is None or not _exists(tag):
        raise InfraError(f"image {tag} is not built; {REMEDY}")
    return tag


def image_id(name: ImageName) -> str:
    """The engine's id (sha256:…) of a built image: what a run record keeps. Raises InfraError."""
    return str(engine().images.get(image_tag(name)).id)


def missing() -> tuple[ImageName, ...]:
    """Names of the images that are not built, or not from these sources."""
    base = find_base()
    return tuple(name for name in PARENTS if base is None or not _exists(_tag(name, base[1])))


def ensure_images() -> dict[ImageName, str]:
    """Builds what is missing, parents first, with progress on standard error. Raises InfraError."""
    if missing():
        with _one_builder():
            reference, base_id = ensure_base()
            for name in missing():
                _build(name, reference, base_id)
    base = find_base()
    assert base is not None
    return {name: _tag(name, base[1]) for name in PARENTS}


def _tag(name: ImageName, base_id: str) -> str:
    return f"cdb-{name}:{_digest(name, base_id)[:12]}"


def _digest(name: ImageName, base_id: str) -> str:
    """What decides an image's content: its folder, its parents, the base, and the Playwright it carries.

    Mirrors, proxies and certificates of the site are left out: they change where bytes come from.
    """
    parent = PARENTS[name]
    digest = hashlib.sha256()
    digest.update((_digest(parent, base_id) if parent else base_id).encode())
    for path in sorted((SOURCES / name).iterdir()):
        content = path.read_bytes()
        digest.update(f"\0{path.name}\0{len(content)}\0".encode() + content)
    if name == "browser":
        digest.update(importlib.metadata.version("playwright").encode())
    return digest.hexdigest()


def _exists(tag: str) -> bool:
    try:
        engine().images.get(tag)
    except ImageNotFound:
        return False
    return True


def _build(name: ImageName, base_reference: str, base_id: str) -> None:
    parent = PARENTS[name]
    arguments: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix=f"cdb-image-{name}-") as folder:
        context = Path(folder) / "context"
        shutil.copytree(SOURCES / name, context)
        if parent:
            arguments["PARENT"] = _tag(parent, base_id)
        else:
            sources = () if "CDB_BASE_IMAGE" in os.environ else machine.apt_sources(SUITE)
            arguments |= {"BASE": base_reference, "NPM_REGISTRY": machine.npm_registry()}
            arguments["APT_SOURCES"] = "\n".join(sources)
            _write_certificates(context / "certs", https=any("https:" in line for line in sources))
        if name == "browser":
            shutil.copytree(_playwright_core(), context / "playwright-core")
        build(name, _tag(name, base_id), context, arguments | machine.proxies())


def _write_certificates(folder: Path, *, https: bool) -> None:
    folder.mkdir()
    (folder / ".keep").touch()
    for number, pem in enumerate(machine.extra_certificates()):
        (folder / f"site-{number:03}.crt").write_bytes(pem)
    bundle = machine.ca_bundle()
    if https and bundle:
        shutil.copyfile(bundle, folder / "bootstrap.pem")


def _playwright_core() -> Path:
    """Folder of the JavaScript half of the installed playwright-python (which is not imported for it)."""
    found = importlib.util.find_spec("playwright")
    for place in (found.submodule_search_locations or []) if found else []:
        package = Path(place) / "driver" / "package"
        if (package / "package.json").is_file():
            return package
    raise InfraError("the Python package playwright is not installed whole; install from requirements.lock")


@contextmanager
def _one_builder() -> Iterator[None]:
    """Only one process of this user builds at a time; a second one waits and then finds the work done."""
    path = Path(tempfile.gettempdir()) / f"cdb-images-{os.getuid()}.lock"
    with path.open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Builds what is missing and prints one tag a line."""
    try:
        for tag in ensure_images().values():
            print(tag)
    except CdbError as error:
        print(f"images: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
