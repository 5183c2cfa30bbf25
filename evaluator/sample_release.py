"""Makes the sample release, the project's own small dataset, from the case sources that ship with it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from bench.errors import CdbError, InfraError
from evaluator.case_source import read_cases
from evaluator.pack import pack_release
from evaluator.release_card import ReleaseAbout

VERSION = "1.0.0"
SUMMARY = (
    "Small, believable web applications with a user's request, an annotated screenshot and, mostly, one\n"
    "more attachment: speech, a screen recording, a document or an image. Made for demonstrations, tests and the\n"
    "calibration of judges; shipped with the Co-Design Bench harness and in the layout of the public release."
)


def make_sample_release(out: Path, sources: Path | None = None, rubrics: Path | None = None) -> Path:
    """Write the sample release to the folder `out` and return it.

    `sources` and `rubrics` are the solver's and the evaluator's case folders; by default the shipped ones.
    Adding a case is adding a folder to both. Errors are those of `evaluator.pack.pack_release`.
    """
    sources = sources or _shipped("harness")
    rubrics = rubrics or _shipped("evaluator")
    scope = f"Sample-{len(read_cases(sources, rubrics))}"
    about = ReleaseAbout(
        name=f"Co-Design Bench {scope}",
        scope=scope,
        version=VERSION,
        released="2026-12-01",
        summary=SUMMARY,
        authors="The codesign-bench contributors",
    )
    return pack_release(sources, rubrics, out, about)


def _shipped(package: str) -> Path:
    """`sample/cases` of an installed top-level package, in a checkout and in a wheel alike.

    The evaluator may not import the harness. `find_spec` of a top-level name only locates its folder: no code
    of it runs, and what is read there is data.
    """
    spec = find_spec(package)
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / "sample" / "cases"
        if folder.is_dir():
            return folder
    raise InfraError(f"the package {package} has no sample/cases; install the project again")


def main(argv: list[str]) -> int:
    """`scripts/make_sample_release OUT`: prints the release's folder."""
    if len(argv) != 1 or argv[0].startswith("-"):
        print("usage: scripts/make_sample_release OUT", file=sys.stderr)
        return 2
    try:
        print(make_sample_release(Path(argv[0]).absolute()))
    except CdbError as error:
        print(f"make_sample_release: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
