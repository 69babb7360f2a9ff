"""Profile of a dataset: the statistics that its next version is compared with, and that its card shows."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq

from pipelines.corpora.evidence.dataset_evidence import DatasetEvidence
from pipelines.corpora.shards.writing import read_json


def dataset_profile(evidence: DatasetEvidence) -> dict[str, Any]:
    """Statistics of each table.

    Documents, characters, lengths by bin and answers are exact; languages, tokens and word sequences are those of a
    sample.
    """
    samples = read_json(evidence.study / "study.json")
    return {
        "tables": {
            table: evidence.totals(table) | _sampled(evidence, table) | samples[table] for table in evidence.evidence
        }
    }


def _sampled(evidence: DatasetEvidence, table: str) -> dict[str, Any]:
    """Sampled documents by language (`unknown`: text too short), and totals of tokens, unknown tokens and words."""
    study = pq.read_table(evidence.study / f"{table}.parquet")
    languages: dict[str, int] = {}
    for language in study["detected_language"].to_pylist():
        languages[language or "unknown"] = languages.get(language or "unknown", 0) + 1
    counts = {"tokens": "token_count", "unknown": "unknown_tokens", "words": "word_count"}
    tokens = {name: sum(many or 0 for many in study[column].to_pylist()) for name, column in counts.items()}
    return {"sampled": len(study), "languages": dict(sorted(languages.items())), "tokens": tokens}
