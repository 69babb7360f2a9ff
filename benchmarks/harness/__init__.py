"""Measurement: variants take turns, and a record holds the machine, its other load, and confidence intervals.

A benchmark is a file of `benchmarks/` with a subclass of `Benchmark`; they are discovered, not listed.
"""
