"""Identity and ancestry of results, and the store that holds them.

source.py       digest of code: syntax trees of a module and all its imports, without comments and formatting
fingerprint.py  sha256 over the canonical JSON of everything a step's result depends on
provenance.py   the record in every artifact: identity, parents, files, environment
results.py      files of a job's folder, and the result that a finished job reports
weights.py      the models whose weights a model continues
differences.py  differences between two records of the same step, and their possible reasons
store.py        one immutable folder per fingerprint; the only module that decides on a cache hit
transfer.py     artifacts as one tar file
upkeep.py       verify a store, and delete what is no longer needed
disk.py         atomic and durable writes
locks.py        locks between processes on one machine
hardware.py     processor and GPUs of this machine, without importing torch
"""
