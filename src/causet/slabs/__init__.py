"""Causal order in slabs of time: each slab is ordered by itself, and all of them together are the order.

Pure functions on Arrow tables; who carries the tables from one to the next (Spark, or a test) is no concern
of theirs: `cut` → the pieces of a slab → `window` → `order` → the slab's rows, and `claims` → `judge`.

Definitions. `repaired` of an event is the largest time among it and its ancestors; `level` is 1 + the largest
level among its direct predecessors with the same `repaired`, or 1; the order is by (repaired, level, process,
seq). The `reach` of a plan is a guess of D, the largest repaired(e) - time(e).

What a slab sees. The slab [s, t) gives out the events whose `repaired` lies in it. It gets all events with a
time in [s - reach, t + 2 reach).

Why that is enough, if D <= reach. Let a be the ancestor (or e itself) whose time is repaired(e), and i an
event on the way from a to e. Being an ancestor of e, it has time(i) <= repaired(e); having a as an ancestor,
it has time(i) >= repaired(e) - D. So if repaired(e) is in [s, t), the whole way is in [s - reach, t): e is
there, and its `repaired` comes out right. If repaired(e) is t or more while time(e) < t, the way is in
[t - reach, t + reach), so e is seen to belong elsewhere. And no event comes out with more than its
`repaired`. Direct predecessors with the same `repaired` are given out by the same slab, so levels are right.

Why a wrong guess shows. Every event is at home in one slab, that of its time. Where D > reach take, of all
pairs of an ancestor a and an event e with time(a) - time(e) > reach, one with the fewest events between them.
If there are none, a is a direct predecessor of e: the home of e either sees the difference, or does not have
a, and then a lies above it, which `judge` finds. Otherwise each event y between has time(a) - time(y) <=
reach and time(y) - time(e) <= reach. So all of them and a have times in (time(e), time(e) + 2 reach], which
is in the window of e's home, and e is seen to be moved by more than the reach. A cycle makes each of its
events an ancestor of itself: if all of it is in a window, its events are never ready; if not, it is longer
than the reach, and the same holds.

Positions. Before the first event of the slab [s, t) come those with repaired < s. All events with a time
below s - reach are among them, and of those with a time in [s - reach, s) the window knows which.
"""
