"""Bundlers and site generators that leave static files: how each is recognised, run, and where it writes."""

from __future__ import annotations

import re
from typing import NamedTuple

from evaluator.npm_package import SUFFIXES, Package

LEGACY_OPENSSL = {"NODE_OPTIONS": "--openssl-legacy-provider"}
"""Webpack 4 hashes with MD4, which OpenSSL 3 keeps behind this switch."""
_IN_FOLDER = r"""(?:(?:path\.)?(?:resolve|join)\(\s*(?:__dirname|process\.cwd\(\)|import\.meta\.dirname)\s*,\s*)?"""
_QUOTED = r"""["'`]([^"'`$]+)["'`]"""
_MORE = re.compile(r"""\s*,\s*["'`]([^"'`$]+)["'`]""")
VITE_ROOT = re.compile(r"""^\s*root\s*:\s*["'`]([^"'`$]+)["'`]""", re.MULTILINE)
OUT_DIR_FLAG = re.compile(r"--(?:outDir|dist-dir|out-dir|output-path|dest|outDir)[ =]([\w./-]+)")


class Tool(NamedTuple):
    """One tool: the package that tells it, its own build command, its default output folder.

    `output_in` are the files that may name another folder, by `output_as`. `openssl_from` is the major
    version from which it builds without legacy OpenSSL. `spa`: unknown paths are the page's own affair.
    """

    package: str
    command: tuple[str, ...]
    output: str
    output_in: tuple[str, ...] = ()
    output_as: str = r"(?!)"
    openssl_from: int = 0
    spa: bool = True


def _named(stem: str) -> tuple[str, ...]:
    return tuple(f"{stem}.{suffix}" for suffix in SUFFIXES)


TOOLS = (
    Tool("gatsby", ("gatsby", "build"), "public", spa=False),
    Tool("@docusaurus/core", ("docusaurus", "build"), "build", spa=False),
    Tool("@11ty/eleventy", ("eleventy",), "_site", spa=False),
    Tool("vite", ("vite", "build"), "dist", _named("vite.config"), rf"\boutDir\s*:\s*{_IN_FOLDER}{_QUOTED}"),
    Tool("react-scripts", ("react-scripts", "build"), "build", openssl_from=5),
    Tool(
        "@vue/cli-service",
        ("vue-cli-service", "build"),
        "dist",
        _named("vue.config"),
        rf"\boutputDir\s*:\s*{_IN_FOLDER}{_QUOTED}",
        openssl_from=5,
    ),
    Tool(
        "parcel",
        ("parcel", "build", "index.html"),
        "dist",
        ("package.json",),
        r"""(?:--dist-dir|--out-dir|-d)[ =]([\w./-]+)|"distDir"\s*:\s*"([^"]+)\"""",
    ),
    Tool("parcel-bundler", ("parcel", "build", "index.html"), "dist"),
    Tool("@rsbuild/core", ("rsbuild", "build"), "dist"),
    Tool(
        "webpack",
        ("webpack", "--mode", "production"),
        "dist",
        (*_named("webpack.config"), "webpack.prod.js", "config/webpack.prod.js"),
        rf"\bpath\s*:\s*{_IN_FOLDER}{_QUOTED}",
        openssl_from=5,
    ),
)


def tool_of(package: Package) -> Tool | None:
    """The first tool of the table that the package needs."""
    return next((tool for tool in TOOLS if tool.package in package.needs), None)


def output_of(package: Package, tool: Tool) -> str:
    """Where the tool writes, relative to the package: script, then configuration, then its default."""
    flag = OUT_DIR_FLAG.search(package.scripts.get("build", ""))
    output, below = (flag[1] if flag else ""), ""
    for name in tool.output_in:
        text = package.text(name)
        told = re.search(tool.output_as, text)
        if told and not output:
            output = next(filter(None, told.groups()), "") + _rest(text[told.end() :])
        inner = VITE_ROOT.search(text) if tool.package == "vite" else None
        if inner and (package.folder / inner[1] / "index.html").is_file():
            below = inner[1]
    return "/".join(filter(None, [below.strip("/"), output or tool.output]))


def _rest(text: str) -> str:
    """Further segments of a path given in parts: `path.join(__dirname, 'public', 'built')`."""
    found, place = "", 0
    while more := _MORE.match(text, place):
        found, place = f"{found}/{more[1]}", more.end()
    return found
