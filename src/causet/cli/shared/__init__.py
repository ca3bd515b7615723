"""What commands share: options, sessions, displays, printing."""
