"""What this machine's own tools are set to: package mirrors, proxies, and certificates of a private CA.

Nothing here has a default address of its own: where a tool says nothing, the result is empty and the
tool's default inside the image holds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from bench.errors import InfraError

PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
CA_VARIABLES = ("CDB_CA_BUNDLE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
SYSTEM_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_DISTRIBUTION_CERTIFICATES = Path("/usr/share/ca-certificates")
_LOCAL_CERTIFICATES = Path("/usr/local/share/ca-certificates")
_TOOL_DEADLINE_S = 20.0
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def npm_registry() -> str:
    """The npm registry, without a trailing slash: CDB_NPM_REGISTRY, else what `npm config` says.

    Raises InfraError when neither is there.
    """
    address = os.environ.get("CDB_NPM_REGISTRY") or _ask("npm", "config", "get", "registry")
    if not address.startswith(("http://", "https://")):
        raise InfraError("no npm registry is known: install npm on this machine or set CDB_NPM_REGISTRY to one")
    return address.rstrip("/")


def pip_index() -> str:
    """The Python package index set in pip's configuration, or empty (pip's default)."""
    return os.environ.get("PIP_INDEX_URL") or _ask("pip3", "config", "get", "global.index-url")


def pip_configuration() -> dict[str, str]:
    """pip's effective values by their bare names (`index-url`, `cert`, `proxy`, `trusted-host` …), as `pip download`
    takes them: the environment before `download`, `install` and `global`. Empty where there is no pip."""
    found: dict[str, dict[str, str]] = {}
    for line in _ask("pip3", "config", "list").splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.strip().rpartition(".")
        found.setdefault(section, {})[key] = value.strip().strip("'\"").replace("\\n", " ").strip()
    merged: dict[str, str] = {}
    for section in ("global", "install", "download", ":env:"):
        merged |= found.get(section, {})
    return {key: value for key, value in merged.items() if value}


def pip_default_index() -> str:
    """The index that pip asks when nothing is configured, by its own help text; empty where there is no pip."""
    told = re.search(r"--index-url.*?\(default\s+(https?://[^\s)]+)\)", _ask("pip3", "help", "download"), re.DOTALL)
    return told[1] if told else ""


def apt_sources(suite: str) -> tuple[str, ...]:
    """The `deb` lines apt uses here for Debian's `suite`, its updates and its security archive.

    Empty on a machine of another release or distribution.
    """
    lines = _ask("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
    wanted = {suite, f"{suite}-updates", f"{suite}-security"}
    found: dict[tuple[str, str], list[str]] = {}
    for line in lines.splitlines():
        match line.split():
            case [address, release, component] if release in wanted and "debian" in address:
                found.setdefault((address.rstrip("/"), release), []).append(component)
    if not any(release == suite for _, release in found):
        return ()
    return tuple(
        f"deb {address} {release} {' '.join(dict.fromkeys(components))}"
        for (address, release), components in found.items()
    )


def proxies() -> dict[str, str]:
    """Proxy variables as set here; apt's own proxy where the environment names none."""
    found = {name: os.environ[name] for name in PROXY_VARIABLES if os.environ.get(name)}
    if "http_proxy" not in found and "HTTP_PROXY" not in found:
        told = re.search(r'"(http[^"]+)"', _ask("apt-config", "dump", "Acquire::http::Proxy"))
        if told:
            found["http_proxy"] = told[1]
    return found


def ca_bundle() -> Path | None:
    """The bundle of trusted certificates this machine's tools are told to use, else the system's."""
    for name in CA_VARIABLES:
        told = os.environ.get(name)
        if told and Path(told).is_file():
            return Path(told)
        if told and name == "CDB_CA_BUNDLE":
            raise InfraError(f"CDB_CA_BUNDLE names {told}, which is no file; correct or unset it")
    return SYSTEM_BUNDLE if SYSTEM_BUNDLE.is_file() else None


def extra_certificates() -> tuple[bytes, ...]:
    """Certificates (PEM, one each) that are trusted here and that the distribution does not ship.

    Where the distribution's own set is not installed nothing can be told apart, and only a bundle named
    by CDB_CA_BUNDLE is taken, whole.
    """
    bundle = ca_bundle()
    if bundle is None:
        return ()
    shipped = {
        _normal(pem) for path in _DISTRIBUTION_CERTIFICATES.rglob("*.crt") for pem in _PEM.findall(path.read_bytes())
    }
    if not shipped and not os.environ.get("CDB_CA_BUNDLE"):
        return ()
    local = [*sorted(_LOCAL_CERTIFICATES.rglob("*.crt")), bundle]
    found: dict[bytes, bytes] = {}
    for path in local:
        for pem in _PEM.findall(path.read_bytes()):
            if _normal(pem) not in shipped:
                found.setdefault(_normal(pem), pem + b"\n")
    return tuple(found.values())


def _normal(pem: bytes) -> bytes:
    return b"".join(pem.split())


def _ask(*argv: str) -> str:
    """Standard output of a tool that tells its configuration; empty where it is missing or fails."""
    if shutil.which(argv[0]) is None:
        return ""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_TOOL_DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
