"""Every private part of Spark that the source uses stands in the table of docs/spark.md, with its module."""

from __future__ import annotations

import ast
import re

from tests.helpers.places import ROOT

SOURCE = ROOT / "src" / "causet"
PUBLIC = (
    "pyspark",
    "pyspark.errors",
    "pyspark.sql",
    "pyspark.sql.datasource",
    "pyspark.sql.functions",
    "pyspark.sql.streaming",
    "pyspark.sql.types",
    "pyspark.sql.window",
)
"""Modules in PySpark's API reference; `pyspark.sql.streaming` with those below it."""
SEAMS = {
    "pyspark.worker": r'"pyspark\.worker"',
    "spark.python.daemon.module": r'"spark\.python\.daemon\.module"',
    "pyspark.sql.streaming.transform_with_state_driver_worker": r"transform_with_state_driver_worker",
    "checkpointFileManagerClass": r"checkpointFileManagerClass",
    "PYSPARK_GATEWAY_PORT": r"PYSPARK_GATEWAY_PORT",
    "SPARK_CONNECT_MODE_ENABLED": r"SPARK_CONNECT_MODE_ENABLED",
    "JAVA_GATEWAY_EXITED": r"JAVA_GATEWAY_EXITED",
    "org.apache.spark.deploy.SparkSubmit": r"org\.apache\.spark\.deploy\.SparkSubmit",
    "org.apache.spark.launcher.Main": r"org\.apache\.spark\.launcher\.Main",
    "org.apache.spark.sql.parquet.row.metadata": r"org\.apache\.spark\.sql\.parquet\.row\.metadata",
    "py4j": r'(?:from|import) py4j|"py4j", "grpc"\)',
    "__globPaths__": r"__globPaths__",
    "offsets": r'/ "offsets"',
    "commits": r'/ "commits"',
    "sources": r'/ "sources"',
    "_spark_metadata": r"_spark_metadata",
}
KNOWN = re.compile(
    r"org\.apache\.spark\.(repl\.Main|api\.python\.PythonGatewayServer)"  # loggers, which are silenced
    r"|org\.apache\.spark\.sql\.execution\.streaming\.state\.RocksDBStateStoreProvider"  # documented
    r"|org\.apache\.spark\.sql\.execution\.streaming\.checkpointing\.FileSystemBasedCheckpointFileManager"
)
"""Names of classes that are documented, that only silence a log, or that belong to a seam above."""
ANY_CLASS = re.compile(r"org\.apache\.spark(?:\.\w+)+")
JAVA_OBJECT = re.compile(r"\._j(?:vm|df|sc|c|seq|sparkSession|read|write|query)\b|\._gateway\b")
PRIVATE_OPTION = re.compile(r'option\("(__\w+)"')


def modules() -> dict[str, str]:
    return {
        path.relative_to(SOURCE).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(SOURCE.rglob("*.py"))
    }


def imported(source: str) -> set[str]:
    """The modules of PySpark that a module imports, lazily too; a name in `pyspark` may be a module."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "pyspark":
                found |= {f"pyspark.{alias.name}" for alias in node.names if alias.name.islower()}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.partition(".")[0] == "pyspark"}


def is_public(module: str) -> bool:
    return module in PUBLIC or module.startswith("pyspark.sql.streaming.")


def used() -> set[tuple[str, str]]:
    """Each private part with each module that uses it."""
    found = set()
    for module, source in modules().items():
        for name in imported(source):
            if not is_public(name):
                found.add((name.removesuffix(".types"), module))
        found |= {(name, module) for name, pattern in SEAMS.items() if re.search(pattern, source)}
    return found


def in_table() -> set[tuple[str, str]]:
    text = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (`.*?) \| (`.*?) \| .+ \| .+ \|$", text.partition("## Private parts")[2], re.MULTILINE
    )
    return {
        (name, module)
        for names, homes in rows
        for name in re.findall("`(.*?)`", names)
        for module in re.findall("`(.*?)`", homes)
    }


def test_the_table_has_every_private_part_with_its_modules() -> None:
    assert sorted(used() - in_table()) == [], "used, and not in the table of docs/spark.md"
    assert sorted(in_table() - used()) == [], "in the table of docs/spark.md, and not used"


def test_no_module_uses_another_one() -> None:
    for module, source in modules().items():
        assert JAVA_OBJECT.findall(source) == [], module
        assert set(PRIVATE_OPTION.findall(source)) <= SEAMS.keys(), module
        classes = {name for name in ANY_CLASS.findall(source) if not KNOWN.fullmatch(name)}
        assert classes <= SEAMS.keys(), module


def test_an_unknown_one_is_noticed() -> None:
    assert not is_public("pyspark.sql.pandas.types")
    assert imported("def f():\n    from pyspark import java_gateway") == {"pyspark", "pyspark.java_gateway"}
    assert JAVA_OBJECT.search("spark._jvm") and PRIVATE_OPTION.search('reader.option("__x__", 1)')
