"""What judges executions: the oracle, the trace checker, the explorer."""
