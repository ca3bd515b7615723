"""The type of the columns that kernels read and write."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
