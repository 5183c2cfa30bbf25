"""YAML that people write by hand. Whatever is wrong with it is said with the name of its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from bench.errors import UsageError


def read_yaml(path: Path) -> Any:
    """The content of a UTF-8 file (a BOM is tolerated), None for an empty one.

    Raises UsageError for a file that cannot be read, is not UTF-8, or is not YAML in which no key is given twice.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8-sig"), Loader=_OnceLoader)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 ({error}); save it as UTF-8") from error
    except (yaml.YAMLError, ValueError, TypeError) as error:  # the last two: a date or a key that cannot be
        raise UsageError(f"{path} is not YAML: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{path} is not YAML that can be read: it is nested too deeply") from error


class _OnceLoader(yaml.SafeLoader):
    """YAML as `safe_load` reads it, but a key given twice is an error: one of the two would be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue  # `<<` may come more than once
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)
