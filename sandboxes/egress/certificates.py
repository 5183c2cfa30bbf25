"""A certificate authority for one run: containers trust it, and it vouches for the hosts of one store only.

Its own key never leaves the throw-away container that makes it. The keys are made by openssl of the solver image,
so that the machine itself needs none.
"""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.errors import InfraError
from sandboxes.docker_sandbox import DockerSandbox
from sandboxes.egress.policy import is_literal
from sandboxes.sandbox import MIB, WORKSPACE, Limits, SandboxSpec

CERTIFICATE = "hosts.pem"
KEY = "hosts.key"
AUTHORITY = "authority.pem"
POLICY = "cdb.json"
_DAYS = "60"
_LIMITS = Limits(memory_bytes=128 * MIB, cpus=1.0, pids=64, workspace_bytes=MIB, home_bytes=MIB, tmp_bytes=4 * MIB)
_NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", _DAYS]


def make_certificates(hosts: Sequence[str], folder: Path, *, image: str, run: str) -> None:
    """Write `hosts.pem` with `hosts.key`, good for `hosts`, and for containers `trust/authority.pem` and
    `chromium/cdb.json` (a policy by which Chromium trusts the same) into `folder`. Raises InfraError."""
    with (
        tempfile.TemporaryDirectory(prefix="cdb-openssl-") as scratch,
        DockerSandbox(SandboxSpec(role="builder", image=image, run=run, limits=_LIMITS)) as box,
    ):
        (Path(scratch) / "openssl.cnf").write_text(_configuration(hosts), encoding="ascii")
        box.put_tree(Path(scratch))
        _openssl(box, "authority", ["-keyout", "authority.key", "-out", AUTHORITY])
        signed = ["-CA", AUTHORITY, "-CAkey", "authority.key", "-keyout", KEY, "-out", CERTIFICATE]
        _openssl(box, "hosts", signed)
        made = {name: box.read_file(f"{WORKSPACE}/{name}") for name in (AUTHORITY, CERTIFICATE, KEY)}
    key = folder / KEY
    key.touch(mode=0o600)
    key.write_bytes(made[KEY])
    (folder / CERTIFICATE).write_bytes(made[CERTIFICATE])
    for shown in ("trust", "chromium"):
        (folder / shown).mkdir()
    (folder / "trust" / AUTHORITY).write_bytes(made[AUTHORITY])
    der = base64.b64encode(ssl.PEM_cert_to_DER_cert(made[AUTHORITY].decode("ascii"))).decode()
    (folder / "chromium" / POLICY).write_text(json.dumps({"CACertificates": [der]}), encoding="ascii")


def _openssl(box: DockerSandbox, section: str, more: list[str]) -> None:
    argv = ["openssl", "req", "-x509", "-config", "openssl.cnf", "-extensions", section, *_NEW_KEY, *more]
    ended = box.exec(argv, deadline_s=60)
    if not ended.ok:
        raise InfraError(
            f"openssl could not make the certificates for frozen resources (exit code {ended.exit_code})"
        )


def _configuration(hosts: Sequence[str]) -> str:
    names = ",".join(f"{'IP' if is_literal(host) else 'DNS'}:{host}" for host in hosts)
    return (
        "[req]\nprompt=no\ndistinguished_name=name\n[name]\nCN=cdb frozen resources\n"
        "[authority]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n"
        "subjectKeyIdentifier=hash\n"
        f"[hosts]\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\nsubjectAltName={names}\n"
        "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
    )
