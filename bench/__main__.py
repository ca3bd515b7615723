"""`python -m bench [--quick] [NAME …]`: run benchmarks; exit code 1 if a required bound is missed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

import bench
from bench import cuts, flat, groups, holdback, large, pages, protocols, simulator, spark, stamps, streams
from bench.result import Benchmark, Spoilt

BENCHMARKS: dict[str, Benchmark] = {
    "holdback": holdback.results,
    "protocols": protocols.results,
    "stamps": stamps.results,
    "cuts": cuts.results,
    "uncut": cuts.uncut,
    "simulator": simulator.results,
    "pages": pages.results,
    "spark": spark.results,
    "streams": streams.results,
    "groups": groups.results,
    "large": large.results,
    "flat": flat.results,
}
ONLY_BY_NAME = frozenset({"uncut", "large", "flat"})
"""These take too long to run unasked."""


def main(arguments: Sequence[str], benchmarks: Mapping[str, Benchmark] = BENCHMARKS) -> int:
    """Run the benchmarks named, or all; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=bench.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(benchmarks)}; all if none"
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer repetitions and messages, for a first look"
    )
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.names if name not in benchmarks]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(benchmarks)}")
    failures: list[str] = []
    for name in dict.fromkeys(asked.names or (name for name in benchmarks if name not in ONLY_BY_NAME)):
        try:
            for result in benchmarks[name](asked.quick):
                print(result.line(), flush=True)
                print(result.words(), file=sys.stderr, flush=True)
                if result.missed:
                    failures.append(result.complaint())
        except Spoilt as spoilt:
            failures.append(f"spoilt: {name}: {spoilt}")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
