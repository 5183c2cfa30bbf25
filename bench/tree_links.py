"""Which symbolic links of a copied tree may stay: those that end inside it, whatever they pass through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bench.tree import Entry, path_bytes, target_bytes

_MOST_HOPS = 40
"""As many as Linux follows (man path_resolution)."""


def inside(link: str, target: str, root: str) -> str:
    """`target` of the link at relative path `link`, made relative if it is absolute and leads below `root`.

    `root` is where the tree lay. Only folders lead to a link of a tree, never other links, so as many `..` as
    there are folders lead to the tree's top whatever the rest of the target passes through.
    """
    top = root.rstrip("/")
    if not top or not (target == top or target.startswith(f"{top}/")):
        return target
    up = [".."] * link.count("/")
    return "/".join([*up, *filter(None, target[len(top) :].split("/"))]) or "."


def refused_links(entries: Iterable[Entry]) -> dict[bytes, str]:
    """Path and reason of every link of a canonical list that does not end inside its tree."""
    links = {
        path_bytes(e).decode("utf-8", "surrogateescape"): target_bytes(e).decode("utf-8", "surrogateescape")
        for e in entries
        if e["mode"] == "link"
    }
    found = {link: why_refused(link, links) for link in links}
    return {link.encode("utf-8", "surrogateescape"): why for link, why in found.items() if why}


def why_refused(link: str, links: Mapping[str, str]) -> str | None:
    """Why the link at relative path `link` may not stay, or None.

    `links` maps every link of the tree to its target. Following is done here, on names alone, link by
    link: comparing normalised paths would be fooled by `b -> a/../x` where `a` itself is a link.
    """
    if links[link].startswith("/"):
        return f"absolute link to {links[link]!r}"
    rest = links[link].split("/")[::-1]
    here = link.split("/")[:-1]
    hops = 1
    while rest:
        part = rest.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not here:
                return f"link out of the tree to {links[link]!r}"
            here.pop()
            continue
        target = links.get("/".join([*here, part]))
        if target is None:
            here.append(part)
            continue
        hops += 1
        if hops > _MOST_HOPS:
            return f"links in a circle, or more than {_MOST_HOPS} in a row"
        if target.startswith("/"):
            return f"leads over an absolute link to {target!r}"
        rest.extend(target.split("/")[::-1])
    return None
