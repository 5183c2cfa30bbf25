"""axe-core for tests, from npm into a cache of the tests' own; the one place that knows where it comes from."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

VERSION = "4.11.0"


def axe_source() -> str:
    """axe.min.js. Skips the test, with the reason, where npm or its registry cannot be reached."""
    folder = Path(os.environ.get("CDB_TEST_CACHE") or Path.home() / ".cache/cdb-tests") / f"axe-core-{VERSION}"
    script = folder / "axe.min.js"
    if not script.is_file():
        npm = shutil.which("npm")
        if npm is None:
            pytest.skip("no npm, so no axe-core")
        folder.mkdir(parents=True, exist_ok=True)
        ended = subprocess.run(
            [npm, "pack", f"axe-core@{VERSION}", "--silent"], cwd=folder, capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        if ended.returncode != 0:
            pytest.skip(f"axe-core cannot be fetched: {ended.stderr.strip()[-200:]}")
        with tarfile.open(folder / f"axe-core-{VERSION}.tgz") as archive:
            member = archive.extractfile("package/axe.min.js")
            assert member is not None
            script.write_bytes(member.read())
    return script.read_text(encoding="utf-8")


def serious(page: Page) -> list[str]:
    """What axe finds on `page` that is serious or critical: rule, and the first element of each."""
    page.evaluate(f"() => {{ {axe_source()}; window.axe = axe; }}")
    found: dict[str, Any] = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
