"""How this machine reaches its Python package index: pip's own configuration and the environment."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from bench.errors import InfraError
from sandboxes import machine
from sandboxes.mirror_upstream import CERTIFICATE_VARIABLES, Settings


def settings(address: str | None = None) -> Settings:
    """Reads the machine's configuration; a proxy named only in pip's goes to the environment of this process.

    A user name and password in the index's address are sent to that index as pip does, and shown nowhere. Raises
    InfraError when no index is known.
    """
    told = machine.pip_configuration()
    index = address or os.environ.get("CDB_PIP_INDEX") or told.get("index-url") or machine.pip_default_index()
    parts = urlsplit(index)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InfraError(
            "no Python package index is known: install pip on this machine or set CDB_PIP_INDEX to one "
            "(the address of its simple pages)"
        )
    proxy = told.get("proxy")
    if proxy:
        for variable in ("HTTP_PROXY", "HTTPS_PROXY"):
            if not (os.environ.get(variable) or os.environ.get(variable.lower())):
                os.environ[variable] = proxy
    named = [told.get("cert"), *(os.environ.get(name) for name in CERTIFICATE_VARIABLES)]
    files = tuple(Path(name) for name in dict.fromkeys(filter(None, named)) if Path(name).is_file())
    trusted = {*told.get("trusted-host", "").split()}
    host = parts.hostname + (f":{parts.port}" if parts.port else "")
    bare = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
    return Settings(
        bare, _credentials(parts.username, parts.password), files, not {host, parts.hostname} & {*trusted}
    )


def _credentials(user: str | None, password: str | None) -> dict[str, str]:
    if not user:
        return {}
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
