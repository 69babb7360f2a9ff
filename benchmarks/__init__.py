"""Benchmarks of the project's goals on the machine at hand. Never part of the tests: a busy machine is not a bug."""
