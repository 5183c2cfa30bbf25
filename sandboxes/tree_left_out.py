"""Which members of a tree a policy leaves out, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence

from sandboxes.sandbox import LeftOutPart, TreePolicy


class LeftOutParts:
    """Decides member by member; remembers the topmost path of each part, never its members."""

    def __init__(self, policy: TreePolicy) -> None:
        self._names = policy.leave_out | policy.never
        self._never = policy.never
        self._keep = policy.keep
        self._on_the_way = {
            "/".join(parts[:length])
            for parts in (path.split("/") for path in policy.keep)
            for length in range(1, len(parts))
        }
        self._files: dict[str, int] = {}
        self._bytes: dict[str, int] = {}

    def takes(self, parts: Sequence[str], *, is_folder: bool, size: int) -> bool:
        """Whether the member is left out; if so it is counted."""
        if self._names.isdisjoint(parts):
            return False
        top = self._top(parts, is_folder)
        if top is None:
            return False
        self._files[top] = self._files.get(top, 0) + (not is_folder)
        self._bytes[top] = self._bytes.get(top, 0) + size
        return True

    def parts(self) -> tuple[LeftOutPart, ...]:
        return tuple(
            LeftOutPart(path, self._reason(path), self._files[path], self._bytes[path])
            for path in sorted(self._files)
        )

    def _top(self, parts: Sequence[str], is_folder: bool) -> str | None:
        """The topmost directory on the way to the member that takes it out, or None."""
        for length, name in enumerate(parts, start=1):
            last = length == len(parts)
            if name in self._never:
                return "/".join(parts[:length])
            if name not in self._names or (last and not is_folder):
                continue
            path = "/".join(parts[:length])
            if path not in self._keep and not self._is_kept_below(path, parts, is_folder):
                return path
        return None

    def _is_kept_below(self, path: str, parts: Sequence[str], is_folder: bool) -> bool:
        """Whether the member is, or lies in, or leads to something kept below left-out directory `path`."""
        if path not in self._on_the_way:
            return False
        if is_folder and "/".join(parts) in self._on_the_way:
            return True
        first = path.count("/") + 2
        return any("/".join(parts[:length]) in self._keep for length in range(first, len(parts) + 1))

    def _reason(self, path: str) -> str:
        name = path.rsplit("/", 1)[-1]
        if name in self._never:
            return f"{name} is no part of an application"
        kept = " but for what the application refers to or came with" if path in self._on_the_way else ""
        return f"directories named {name} are left out{kept}"
