"""What a page holds, read as its script reads it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from typing import Any


def data_of(page: str) -> dict[str, Any]:
    """The header of a page's data."""
    encoded = re.search(r'id="causet-data"[^>]*>([^<]+)<', page)
    assert encoded is not None
    raw = zlib.decompress(base64.b64decode(encoded[1]))
    found: dict[str, Any] = json.loads(raw[4 : 4 + int.from_bytes(raw[:4], "little")])
    return found
