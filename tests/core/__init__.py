"""The engine, the stamps, the simulator and the checker."""
