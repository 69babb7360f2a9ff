"""Training batches: a pure function of the data, the seed and the step."""
