"""The merge on a measure of progress other than time (Kulkarni & Ravikant, section 6).

    "rt.j could denote the number of reset operations that j has performed. Or, in a checkpointing and
    recovery program, rt.j could denote the incarnation number of j. (Of course, in this case, we will permit
    K events between incrementing of rt.j where K is a predetermined constant.)"

Nothing in the merge knows what its clock counts. A `Progress` drives a process by such a counter: it is
raised by one at each reset, or at each incarnation, and what ε and δ bound is counted in these steps: two
counters differ by at most ε (G1), and a message arrives before its receiver's counter has gone δ beyond its
sender's (G2). At most K events fall between two steps, and a send beyond that leaves at the next one.

The counter must survive what it counts, and so must the state of the process (`Process.snapshot`): one that
has forgotten what it sent is a new process, and needs a new name (H12).

    >>> from causet.model import System, named_processes
    >>> from causet.protocols import make_options, protocol_named
    >>> merge, system = protocol_named("merge"), System(named_processes(2))
    >>> options, _ = make_options(merge, system, {"epsilon": 1, "delta": 0, "events_per_tick": 1})
    >>> p1, p2 = (Progress(Process(merge, p, system, options)) for p in range(2))
    >>> [question] = p1.process.send(0b10).packets
    >>> p2.process.receive(question).delivered
    ()
    >>> p1.may_advance([p2.count]), bool(p1.advance().delivered), p1.may_advance([p2.count])
    (True, False, False)
    >>> [len(p2.advance().delivered) for _ in range(2)]
    [0, 1]
"""

from __future__ import annotations

from collections.abc import Iterable

from causet.errors import BadInput
from causet.protocols.base import ClockOptions
from causet.protocols.process import Outcome, Process


class Progress:
    """A process whose clock is a counter of resets or incarnations."""

    __slots__ = ("count", "process")

    def __init__(self, process: Process, count: int = 0) -> None:
        if not process.protocol.clocked:
            raise BadInput(f"{process.protocol.name} has no clock that could count anything")
        self.process = process
        self.count = count
        """resets so far, or the number of this incarnation"""
        if count:
            process.tick(count)

    def may_advance(self, others: Iterable[int]) -> bool:
        """Whether one more reset keeps G1: the counters of all others are known, and none is left behind by
        more than ε."""
        options = self.process.protocol.options
        assert isinstance(options, ClockOptions)
        return all(self.count + 1 <= other + options.epsilon for other in others)

    def advance(self) -> Outcome:
        """One more reset, or the next incarnation: what is due is delivered, and what was put off is sent."""
        self.count += 1
        return self.process.tick(self.count)
