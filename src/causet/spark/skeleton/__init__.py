"""A few bytes of every event, in one place: what the kernels run on."""
