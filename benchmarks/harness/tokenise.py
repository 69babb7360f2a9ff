"""Tokenise a table of text into packed tokens on disk: `python -m benchmarks.harness.tokenise TABLE CACHE
PROCESSES`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.training.batches.reading_texts import read_beginning
from pipelines.training.batches.token_shards import token_stream

SAMPLE = 3_000_000
"""Bytes of text that the tokenizer is trained on."""


def main(table: Path, cache: Path, processes: int) -> None:
    """Print the seconds, without training the tokenizer, and the number of tokens."""
    tokenizer = WordPiece(sample_bytes=SAMPLE).train(read_beginning([table], SAMPLE))
    begun = time.monotonic()
    tokens = len(token_stream([table], tokenizer, None, None, cache, processes).tokens)
    print(json.dumps({"seconds": time.monotonic() - begun, "tokens": tokens}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
