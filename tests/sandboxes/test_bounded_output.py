"""Head, tail and count of a command's output."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxes.bounded_output import BoundedOutput


@settings(deadline=None)
@given(chunks=st.lists(st.binary(max_size=40), max_size=20))
def test_what_is_kept_is_the_head_and_the_tail_of_what_was_written(chunks, tmp_path_factory):
    path = tmp_path_factory.mktemp("out") / "out"
    output = BoundedOutput(path, head_bytes=16, tail_bytes=16)
    for chunk in chunks:
        output.write(chunk)
    output.close()
    whole, kept = b"".join(chunks), path.read_bytes()
    dropped = len(whole) - 32
    line = f"\n[… {dropped} bytes of output dropped here …]\n".encode()
    assert kept == (whole if dropped <= 0 else whole[:16] + line + whole[-16:])


def test_output_nobody_wants_is_only_counted():
    output = BoundedOutput(None)
    output.write(b"abc")
    output.close()
    assert output.total_bytes == 3
