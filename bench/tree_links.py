"""Which symbolic links of a copied tree may stay: those that end inside it, whatever they pass through."""

from __future__ import annotations

from collections.abc import Mapping

_MOST_HOPS = 40
"""As many as Linux follows (man path_resolution)."""


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
            return "links in a circle"
        if target.startswith("/"):
            return f"leads over an absolute link to {target!r}"
        rest.extend(target.split("/")[::-1])
    return None
