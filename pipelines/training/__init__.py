"""One training loop for every recipe.

worker.py     the process a launcher starts: jobs in, results out
run.py        run(job): dispatch on the kind of stage
fit.py        a stage that trains: tokenizer ▸ batches ▸ network ▸ Lightning ▸ Hugging Face folder
windows.py    plain text as batches of fixed-length rows
texts.py      short texts, with or without labels, as length-bucketed batches
assemble.py   the network a stage starts from, every weight accounted for
module.py     the one LightningModule
reporting.py  metrics.jsonl
resume.py     the point an interrupted stage continues from
"""
