"""What messages are: their columns, their numbers and causes, and which readers they are for."""
