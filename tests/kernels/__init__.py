"""The kernels, held to the engine and the oracle."""
