"""Checks in helpers say what they compared, as those in tests do."""

import pytest

pytest.register_assert_rewrite('tracked_arm')
