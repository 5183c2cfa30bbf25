"""Every back end against the conformance suite."""

import pytest

pytest.register_assert_rewrite("conformance")

from conformance import *  # noqa: E402, F403

pytestmark = pytest.mark.docker
