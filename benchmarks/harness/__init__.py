"""How something is measured: variants take turns, and a record says on which machine, in what company, and how sure it is.

A benchmark is a file of `benchmarks/` with a `Benchmark` in it; nothing lists them.
"""
