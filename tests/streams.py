"""Texts as a stream of tokens, made as a stage makes it: from a table, in a cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow
import pyarrow.parquet

from pipelines.parts.annotations import Annotation
from pipelines.parts.segmentations import Segmentation
from pipelines.training.batches.token_shards import token_stream
from pipelines.training.batches.token_stream import TokenStream
from tests.shared_folders import shared_folder

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


def table_of(texts: Sequence[str], path: Path, rows: int = 8192) -> Path:
    """A table of `texts`, in groups of `rows`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {"text": pyarrow.array(list(texts), pyarrow.string())}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=rows)
    return path


def stream_of(
    texts: Sequence[str],
    tokenizer: PreTrainedTokenizerFast,
    segmentation: Segmentation | None = None,
    annotations: Sequence[Annotation] = (),
) -> TokenStream:
    """All of `texts`."""
    folder = shared_folder("stream")
    table = table_of(texts, folder / "text.parquet")
    return token_stream([table], tokenizer, segmentation, None, folder / "cache", annotations=annotations)
