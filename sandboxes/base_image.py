"""The image every other one stands on: a local or pulled debian:bookworm-slim, or one made from apt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Timer

import requests
from docker.errors import APIError, ImageNotFound

from bench.errors import InfraError
from sandboxes import machine
from sandboxes.engine import connect, engine
from sandboxes.owner import IMAGE, OWNER, host

SUITE = "bookworm"
PULLED = "debian:bookworm-slim"
MADE = "cdb-debian:bookworm"
_PULL_DEADLINE_S = 120
_MAKE_DEADLINE_S = 900.0
_PATH = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find_base() -> tuple[str, str] | None:
    """Reference and id of the base image this engine already has; None when it has none.

    CDB_BASE_IMAGE names another one.
    """
    for reference in (os.environ.get("CDB_BASE_IMAGE"), PULLED, MADE):
        if not reference:
            continue
        try:
            return reference, str(engine().images.get(reference).id)
        except ImageNotFound:
            continue
    return None


def ensure_base() -> tuple[str, str]:
    """As `find_base`, but pulls or makes the image where it is missing. Raises InfraError."""
    found = find_base()
    if found:
        return found
    wanted = os.environ.get("CDB_BASE_IMAGE") or PULLED
    failure = _pull(wanted)
    if failure:
        if os.environ.get("CDB_BASE_IMAGE"):
            raise InfraError(f"CDB_BASE_IMAGE={wanted} is neither here nor can it be pulled: {failure}")
        _say(f"{PULLED} cannot be pulled ({failure[:160]}); making it from apt, about a minute")
        _make()
    found = find_base()
    if not found:
        raise InfraError(f"the base image {wanted} vanished right after it was made; is something pruning images?")
    return found


def _pull(reference: str) -> str:
    """Why `reference` could not be pulled; empty when it was."""
    _say(f"pulling {reference}")
    client = connect(timeout_s=_PULL_DEADLINE_S)
    try:
        client.images.pull(reference)
    except (APIError, ImageNotFound, requests.RequestException) as error:
        return str(getattr(error, "explanation", None) or error)
    finally:
        client.close()
    return ""


def _make() -> None:
    """Debian's smallest usable system through mmdebstrap, imported under a name of our own.

    The import has no configuration, so PATH is set. Needs root and apt to install mmdebstrap itself.
    """
    _ensure_mmdebstrap()
    with tempfile.TemporaryDirectory(prefix="cdb-base-") as folder:
        archive, log = Path(folder) / "root.tar", Path(folder) / "log"
        _run_mmdebstrap(archive, log)
        _say("importing the base image")
        told = engine().api.import_image_from_file(
            str(archive),
            repository=MADE.partition(":")[0],
            tag=MADE.partition(":")[2],
            changes=[_PATH, f"LABEL {IMAGE}=debian", f"LABEL {OWNER}={host()}"],
        )
        if '"error"' in told:
            raise InfraError(f"the engine refused the base image: {told[-500:]}")


def _run_mmdebstrap(archive: Path, log: Path) -> None:
    without = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
    argv = [
        "mmdebstrap",
        "--variant=minbase",
        '--aptopt=Acquire::Check-Valid-Until "false"',
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in without),
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        SUITE,
        str(archive),
        *machine.apt_sources(SUITE),
    ]
    environment = {**os.environ, **machine.proxies()}
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)
        timer = Timer(_MAKE_DEADLINE_S, process.kill)
        timer.start()
        try:
            code = process.wait()
        finally:
            timer.cancel()
            process.kill()
    if code != 0:
        raise InfraError(
            f"mmdebstrap could not make the base image (exit {code}): {_tail(log)}\n"
            f"Give it a working apt mirror, or load {PULLED} into the engine (docker load) or name an image "
            "in CDB_BASE_IMAGE."
        )


def _ensure_mmdebstrap() -> None:
    if shutil.which("mmdebstrap"):
        return
    remedy = f"install mmdebstrap, load {PULLED} into the engine (docker load), or set CDB_BASE_IMAGE"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise InfraError(f"{PULLED} cannot be pulled and mmdebstrap is not installed: {remedy}")
    _say("installing mmdebstrap")
    for arguments in (
        ["update"],
        ["install", "-y", "--no-install-recommends", "mmdebstrap", "debian-archive-keyring"],
    ):
        done = subprocess.run(
            ["apt-get", "-q", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_MAKE_DEADLINE_S,
            check=False,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
    if done.returncode != 0:
        raise InfraError(f"apt could not install mmdebstrap: {done.stderr[-500:]}\nRemedy: {remedy}")


def _tail(log: Path, size: int = 1500) -> str:
    return log.read_bytes()[-size:].decode("utf-8", "replace")


def _say(text: str) -> None:
    print(f"images: {text}", file=sys.stderr, flush=True)
