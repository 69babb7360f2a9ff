"""Peers of the benchmarks: training loops as users of other libraries write them, which take turns with ours."""
