"""What a check of a bundle came to: faults, each with its place in the bundle, and what is worth saying besides."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from bench.errors import CdbError, InfraError


class Fault(NamedTuple):
    """Something in a bundle that contradicts another part, or is missing. `place`: path, perhaps with a line."""

    place: str
    what: str

    def line(self) -> str:
        return f"FAULT {self.place}: {self.what}"


@dataclass
class Findings:
    """Collected while a bundle is gone through: one fault does not keep the others from being found."""

    folder: Path
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fault(self, place: str, what: str) -> None:
        fault = Fault(place, what.replace(f"{self.folder}/", ""))
        if fault not in self.faults:
            self.faults.append(fault)

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """What raises within is a fault at `place`; trouble of the machine is not."""
        try:
            yield
        except InfraError:
            raise
        except CdbError as error:
            self.fault(place, str(error))
        except ValidationError as error:
            first = error.errors()[0]
            self.fault(place, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        except (KeyError, TypeError, AttributeError, ValueError, OSError) as error:
            self.fault(place, f"not of its format: {type(error).__name__} {error}")
