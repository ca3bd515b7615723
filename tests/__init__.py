"""The tests, by room. A failed assertion of a helper shows its values, as one in a test does."""

import pytest

pytest.register_assert_rewrite("tests.helpers")
