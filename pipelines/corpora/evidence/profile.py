"""What a dataset is like, in numbers: what the next version is compared with, and what its card shows."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq

from pipelines.corpora.evidence.dataset_evidence import DatasetEvidence
from pipelines.corpora.shards.writing import read_json
from pipelines.corpora.steps.step import TABLES


def dataset_profile(found: DatasetEvidence) -> dict[str, Any]:
    """By table: exact documents, characters, lengths by bin and answers; of a sample languages, tokens, word sequences."""
    told = read_json(found.study / "study.json")
    return {"tables": {table: found.totals(table) | _sampled(found, table) | told[table] for table in TABLES}}


def _sampled(found: DatasetEvidence, table: str) -> dict[str, Any]:
    """Documents by language (`unknown`: too short to tell), and sums of tokens, unknown tokens and words."""
    study = pq.read_table(found.study / f"{table}.parquet")
    languages: dict[str, int] = {}
    for language in study["told_language"].to_pylist():
        languages[language or "unknown"] = languages.get(language or "unknown", 0) + 1
    counts = {"tokens": "token_count", "unknown": "unknown_tokens", "words": "word_count"}
    tokens = {name: sum(many or 0 for many in study[column].to_pylist()) for name, column in counts.items()}
    return {"sampled": len(study), "languages": dict(sorted(languages.items())), "tokens": tokens}
