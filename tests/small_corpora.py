"""Named corpora that a recipe reads, with the columns that it reads of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from pipelines.corpora.documentation.transcription import transcribed
from pipelines.recipe.schema import Stage
from pipelines.recipe.tables import PLAIN
from tests.shared_folders import shared_folder
from tests.small_corpus import documents

VECTOR_WIDTH = 64
"""Width of the vectors that the recipe vl_bert reads."""
VALUES: dict[str, Callable[[str], Any]] = {
    "string": str.upper,
    "list<string>": str.split,
    "list<list<int64>>": lambda text: [
        [9 * (n % 8), n // 8, 9 * (n % 8) + 8, n // 8 + 1] for n in range(text.count(" ") + 1)
    ],
    "list<list<double>>": lambda text: [
        [] if n % 3 else [(len(word) * place % 7) / 7 + 0.1 for place in range(VECTOR_WIDTH)]
        for n, word in enumerate(text.split())
    ],
}
"""Type of a column → its value for a text: its words, eight in a line, and a box for each; every third is a region."""
NAMED_VALUES: dict[str, Callable[[str], Any]] = {
    "translation": transcribed,
    "alignment": lambda text: " ".join(f"{number}-{number}" for number in range(len(text.split()))),
}
"""Column → its value for a text, where another of its type would be none: a translation has words of its own, and an
alignment says which words of both texts are one."""


def corpora_of(views: Iterable[Stage]) -> dict[str, dict[str, str]]:
    """Corpus → its columns besides `text` and their types, for the corpora that are read by name."""
    corpora: dict[str, dict[str, str]] = {}
    for view in views:
        required = dict.fromkeys(view.texts, "string")
        for one in view.annotations:
            required |= one.columns
        for word in view.corpus if view.kind.reads_plain_text else ():
            if word not in PLAIN:
                columns = {name: kind for name, kind in required.items() if name != "text"}
                corpora.setdefault(word, {}).update(columns)
    return corpora


@cache
def corpus_table(columns: tuple[tuple[str, str], ...]) -> Path:
    """A table of texts with `columns` and values of their types."""
    texts = [" ".join(text.split()) for text in documents("json", "argparse", "email")]
    path = shared_folder("corpus") / "corpus.parquet"
    values = {"text": texts} | {
        name: [NAMED_VALUES.get(name, VALUES[kind])(text) for text in texts] for name, kind in columns
    }
    pyarrow.parquet.write_table(pyarrow.table(values), path)
    return path
