"""Where things are: the project, and the real traces if this checkout has them."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
TRACES = Path(os.environ.get("CAUSET_TRACES") or ROOT.parent / "shared" / "traces")
"""Real executions; tests that need them skip where they are missing, and say so."""
