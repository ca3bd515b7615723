"""A broker without topics for each module here: examples choose their names freely."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.kafka import broker_or_skip


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with broker_or_skip() as address:
        yield address
