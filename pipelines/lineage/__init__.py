"""Identity and ancestry: what a result is a function of, and where its bytes live.

source.py       what a module means (its syntax tree and all it imports), not how it is spelled
fingerprint.py  sha256 over the canonical JSON of everything a step's result depends on
provenance.py   the record beside every artifact: identity, parents, files, environment
weights.py      what a model's weights went through
store.py        one immutable folder per fingerprint; the only place where a cache hit is decided
"""
