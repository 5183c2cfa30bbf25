"""Parts of an office document: a ZIP archive of XML, read within caps whatever its directory claims."""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from bench.media.settings import Settings

_DECLARED = (b"<!DOCTYPE", "<!DOCTYPE".encode("utf-16-le"), "<!DOCTYPE".encode("utf-16-be"))
_REL = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_ENCRYPTED = 0x1


class Refused(Exception):
    """A part that is not read, for the reason given."""


@dataclass
class Archive:
    """The document's parts. Reading stops at the caps whatever the directory claims."""

    zip: zipfile.ZipFile
    settings: Settings
    left_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.left_bytes = self.settings.archive_bytes

    def has(self, name: str) -> bool:
        return name in self.zip.NameToInfo

    def names(self, pattern: str) -> list[str]:
        """Names that fit, numbers in them in counting order."""
        found = [name for name in self.zip.namelist() if re.fullmatch(pattern, name)]
        return sorted(found, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])

    def xml(self, name: str) -> Element:
        """A part as XML. Raises Refused, and what zipfile and ElementTree raise."""
        if self.zip.getinfo(name).flag_bits & _ENCRYPTED:
            raise Refused("it is encrypted")
        room = min(self.settings.archive_member_bytes, self.left_bytes)
        try:
            with self.zip.open(name) as stream:
                content = stream.read(room + 1)
        except zlib.error as error:
            raise Refused(f"it is damaged ({error})") from error
        if len(content) > room:
            raise Refused(f"it unpacks to more than {room} bytes")
        self.left_bytes -= len(content)
        if any(mark in content for mark in _DECLARED):
            raise Refused("it declares entities, which no office program writes")
        return ElementTree.fromstring(content)  # entities cannot be declared without a DOCTYPE

    def targets(self, part: str) -> dict[str, str]:
        """Relations of a part: id → the part it leads to."""
        folder, name = posixpath.split(part)
        table = f"{folder}/_rels/{name}.rels"
        if not self.has(table):
            return {}
        found = {}
        for one in self.xml(table):
            target = posixpath.join("/", folder, one.get("Target", ""))  # a target that begins with / stands alone
            found[one.get("Id", "")] = posixpath.normpath(target).lstrip("/")
        return found

    def listed(self, part: str, tag: str) -> list[tuple[str, str]]:
        """(name, part) of the elements `tag` in `part` that lead to another one, in their order."""
        targets = self.targets(part)
        return [
            (one.get("name", ""), targets.get(one.get(_REL, ""), ""))
            for one in self.xml(part).iter()
            if local(one) == tag
        ]


def local(element: Element) -> str:
    """The tag without its namespace."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def attribute(element: Element, name: str) -> str:
    """The attribute of that name in any namespace; "" without one."""
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == name), "")
