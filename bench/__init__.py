"""Benchmarks: `make bench`, or `python -m bench [--quick] [NAME …]`.

Machines differ and are shared, so every figure is a ratio of two measurements of one run: the same work at
two sizes, or two ways to do it. What is timed is timed in processor time, several times, in turns (a, b, a,
b, …), and the best of each counts: noise only ever adds. What is counted (stamps) needs no repetition, for
the simulator gives the same run for the same seed.

Each result is one line of JSON on stdout and one line for people on stderr. A few ratios have a required
bound; one that is missed makes the exit code 1.

    holdback    what a message costs with 100,000 waiting, over 1,000 waiting       required: at most 3
    protocols   messages per second of each protocol, over those of no protocol
    stamps      bytes of each protocol's stamps, over those of matrix clocks
    cuts        entries of a stamp with 10,000 groups and cuts, over those without; only by name
    simulator   events per second with a trace or a judge, over those without
    pages       bytes of a page, over those of the trace as gzip
    spark       order and verify of 10 million events, over Spark's sort by time    required: at most 2 and 3
    streams     deliver and merge, over the same stream passed through, or sorted
    groups      deliver to readers of groups that overlap, over one reader each     required: at most 2
    large       50 million events in a small cluster with a killed executor; only by name
"""
