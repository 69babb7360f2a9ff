"""What the benchmarks compare with: training loops as a user of other libraries writes them, which wait for their turns."""
