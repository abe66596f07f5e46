"""Make failed assertions in `tracked_arm` show the compared values, as in tests."""

import pytest

pytest.register_assert_rewrite('tracked_arm')
