"""The Python that Spark starts on this machine: this one, through a script that makes queries begin sooner.

Whenever a query with state starts, Spark starts a Python that tells it the schemas of the state. The script
lets that process import PySpark from where it is installed, compiled: Spark puts its own zip archive first on
the path, and compiling what is in there takes longer than all the rest. Workers do not need it: they are
forked from `daemon`.
"""

from __future__ import annotations

import os
import shlex
import sys
from hashlib import sha256
from pathlib import Path

import pyspark

from causet.spark.start.archive import spark_home
from causet.spark.start.java import writable_cache, write_once

TELLS_SCHEMAS = "pyspark.sql.streaming.transform_with_state_driver_worker"
SCRIPT = """\
#!/bin/sh
# Starts {python}; without archives of PySpark on its path to tell the schemas of a state.
if [ "$1 $2" = "-m {module}" ]; then
  kept= IFS=:
  set -f
  for entry in $PYTHONPATH; do
    case "$entry" in
      */pyspark.zip | */py4j-*.zip) ;;
      *) kept=${{kept:+$kept:}}$entry ;;
    esac
  done
  unset IFS
  export PYTHONPATH="$kept"
fi
exec {python} "$@"
"""


def python_for_spark(local: bool) -> str:
    """The path of the script; or of this Python where Spark runs elsewhere, or is another installation."""
    if not local or sys.platform == "win32" or spark_home() != Path(pyspark.__file__).parent:
        return sys.executable
    place = writable_cache() / f"python-{sha256(sys.executable.encode()).hexdigest()[:12]}"
    text = SCRIPT.format(python=shlex.quote(sys.executable), module=TELLS_SCHEMAS)
    script = write_once(place / "bin" / "python", text, mode=0o755)
    return str(script) if os.access(script, os.X_OK) else sys.executable  # nothing may be executed there
