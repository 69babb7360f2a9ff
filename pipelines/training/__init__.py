"""One training loop for every recipe.

ranks/          processes that compute a job: worker, ranks, collective operations, errors passed to the launcher
loop/           fit(job), the one LightningModule, validation, resuming and stopping
batches/        token streams and encoded examples as batches: a pure function of data, seed and step
assembly/       the network a stage starts from, its vocabulary, companions and parameter groups, and the export
checkpoints/    checkpoints that are whole or absent, and the best weights of a stage
metrics_log.py  metrics.jsonl
"""
