"""Tests of tests: each rule broken, one at a time."""
