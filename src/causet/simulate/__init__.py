"""Seeded simulation and exact schedules."""
