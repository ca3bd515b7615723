"""Where readers begin: written down with the checkpoint, counted in the state, taken along to another one."""
