"""Workspaces no honest agent leaves: names, link graphs, sizes and modes, drawn by hypothesis.

A workspace is a list of nodes as a file system could hold them. It can be made on this machine's disk (`make`, which
also runs inside a container as a script of its own) or as the tar stream an engine would give (`stream`).
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import random
import sys
import tarfile
from dataclasses import asdict, dataclass
from pathlib import Path

NAMES = [
    b"a", b"b", b"index.html", b"package.json", b"package-lock.json", b"node_modules", b".git", b".cache", b"dist",
    b"new\nline", b"\x1b[31mred", b"\r", b"tab\t", b"-rf", b"--checkpoint=1", b" ", b" lead", b"trail ", b"...", b"~",
    b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\xaf", "é".encode(), "e\u0301".encode(), "日本語".encode(), "😀".encode(),
    "\u202egnp.exe".encode(), "\ufeffbom".encode(), b"README", b"readme", b"ReadMe", b"CON", b"aux", b"NUL.txt", b"COM1",
    b"dot.", b"a:b", b"a\\b", b"C:\\x", b"*?", b"$(id)", b"`id`", b"{{x}}", b"%s%n", b"a=b", b"30 path=evil",
    b".wh.a", b".wh..wh..opq", b".gitattributes", b".gitmodules", b".GIT", b"git~1", b"PaxHeaders.0", b"@LongLink",
    b"n" * 100, b"n" * 101, b"n" * 255, "ü".encode() * 127,
]  # fmt: skip
SIZES = [0, 1, 511, 512, 513, 8192, 65_535, 65_537, 262_145]
MODES = [0o644, 0o755, 0o600, 0o000, 0o4755, 0o2711, 0o777, 0o444]
TARGETS = [
    b"a", b"b", b"..", b".", b"../..", b"a/..", b"a/../..", b"../../../../etc/passwd", b"/", b"/etc/passwd", b"/workspace/a",
    b"/workspace", b"/workspace/../etc", b"/workspaces/a", b"node_modules/a", b"a/b/../b", b"//a", b"a//b", b"./a/", b"\xff",
    b"x" * 300, b"new\nline", b"/proc/self/environ", b"/proc/1/root",
]  # fmt: skip


@dataclass(frozen=True)
class Node:
    """`kind`: file, folder, link, fifo, socket or hard. `to`: a link's target, or the path a hard link shares."""

    path: bytes
    kind: str
    size: int = 0
    mode: int = 0o644
    to: bytes = b""

    @property
    def content(self) -> bytes:
        """Bytes that follow from path and size, with NULs, line ends and no UTF-8 among them."""
        return random.Random(hashlib.sha256(self.path).digest()).randbytes(self.size)


def workspaces(max_nodes: int = 25):
    """A hypothesis strategy for lists of nodes: every parent is a folder of the list, no path comes twice."""
    from hypothesis import strategies as st

    raw_names = st.binary(min_size=1, max_size=60).filter(
        lambda n: b"/" not in n and b"\0" not in n and n not in (b".", b"..")
    )
    names = st.one_of(st.sampled_from(NAMES), raw_names)
    targets = st.one_of(
        st.sampled_from(TARGETS),
        st.lists(st.sampled_from([b"a", b"b", b"..", b".", b"node_modules", b"dist"]), min_size=1, max_size=6).map(
            b"/".join
        ),
    )
    kinds = st.sampled_from(["file"] * 4 + ["folder"] * 4 + ["link"] * 3 + ["fifo", "socket", "hard"])
    drawn = st.tuples(st.integers(0, 99), names, kinds, st.sampled_from(SIZES), st.sampled_from(MODES), targets)
    return st.lists(drawn, max_size=max_nodes).map(_nodes)


def _nodes(drawn) -> list[Node]:
    folders, files, nodes = [b""], [], {}
    for pick, name, kind, size, mode, target in drawn:
        parent = folders[pick % len(folders)]
        path = parent + b"/" + name if parent else name
        if path in nodes or (kind == "socket" and len(name) > 100):
            continue
        if kind == "folder":
            nodes[path] = Node(path, kind, mode=0o755)
            folders.append(path)
        elif kind == "file":
            nodes[path] = Node(path, kind, size, mode)
            files.append(path)
        elif kind == "hard" and files:
            nodes[path] = Node(path, kind, to=files[pick % len(files)])
        elif kind != "hard":
            nodes[path] = Node(path, kind, to=target if kind == "link" else b"")
    return list(nodes.values())


def make(nodes: list[Node], root: Path) -> None:
    """The workspace on a real file system; names that this one cannot hold are an OSError."""
    import socket

    base = os.fsencode(root)
    here = os.getcwd()
    for node in nodes:
        full = base + b"/" + node.path
        if node.kind == "folder":
            os.mkdir(full, 0o755)  # noqa: PTH102  (bytes, here and below)
        elif node.kind == "file":
            with open(full, "wb") as file:
                file.write(node.content)
            os.chmod(full, node.mode)  # noqa: PTH101
        elif node.kind == "link":
            os.symlink(node.to, full)  # noqa: PTH211
        elif node.kind == "fifo":
            os.mkfifo(full)
        elif node.kind == "hard":
            os.link(base + b"/" + node.to, full)
        else:
            os.chdir(os.path.dirname(full))  # noqa: PTH120
            socket.socket(socket.AF_UNIX).bind(os.path.basename(full))  # noqa: PTH119
            os.chdir(here)


def stream(nodes: list[Node], *, pax: bool = False, seed: int | None = None) -> bytes:
    """The engine's archive of it: sockets missing, the first name of a file its content and later ones hard links.

    `seed` shuffles the order of siblings, which a file system may do too.
    """
    out = io.BytesIO()
    form = tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT
    first: dict[bytes, bytes] = {}
    by_path = {node.path: node for node in nodes}
    with tarfile.open(fileobj=out, mode="w", format=form, encoding="utf-8", errors="surrogateescape") as tar:
        tar.addfile(_member(b"workspace", tarfile.DIRTYPE, 0o755))
        for node in _ordered(nodes, seed):
            name = b"workspace/" + node.path
            shared = node.to if node.kind == "hard" else node.path
            if node.kind in ("file", "hard") and shared in first:
                tar.addfile(_member(name, tarfile.LNKTYPE, 0o644, first[shared]))
            elif node.kind in ("file", "hard"):
                first[shared] = name
                content = by_path[shared].content
                tar.addfile(
                    _member(name, tarfile.REGTYPE, by_path[shared].mode, size=len(content)), io.BytesIO(content)
                )
            elif node.kind == "folder":
                tar.addfile(_member(name, tarfile.DIRTYPE, 0o755))
            elif node.kind == "link":
                tar.addfile(_member(name, tarfile.SYMTYPE, 0o777, node.to))
            elif node.kind == "fifo":
                tar.addfile(_member(name, tarfile.FIFOTYPE, 0o644))
    return out.getvalue()


def _ordered(nodes: list[Node], seed: int | None) -> list[Node]:
    """Each folder before what it holds, siblings in byte order or shuffled."""
    shuffled = random.Random(seed)
    keys = {node.path: shuffled.random() for node in nodes} if seed is not None else {}

    def key(node: Node):
        parts = node.path.split(b"/")
        above = [b"/".join(parts[:n]) for n in range(1, len(parts) + 1)]
        return [(keys.get(path, 0), path) for path in above]

    return sorted(nodes, key=key)


def _member(name: bytes, kind: bytes, mode: int, link: bytes = b"", size: int = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name.decode("utf-8", "surrogateescape"))
    member.type, member.mode, member.size = kind, mode, size
    member.linkname = link.decode("utf-8", "surrogateescape")
    return member


def dumped(nodes: list[Node]) -> str:
    """As JSON, to be made elsewhere: `python3 hostile_workspaces.py FOLDER < nodes.json`."""
    return json.dumps(
        [
            {k: base64.b64encode(v).decode() if isinstance(v, bytes) else v for k, v in asdict(n).items()}
            for n in nodes
        ]
    )


if __name__ == "__main__":
    loaded = [
        Node(base64.b64decode(n["path"]), n["kind"], n["size"], n["mode"], base64.b64decode(n["to"]))
        for n in json.load(sys.stdin)
    ]
    make(loaded, Path(sys.argv[1]))
