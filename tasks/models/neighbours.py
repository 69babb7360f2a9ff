"""Nearest neighbours of a word: of its own vector, or of its state in a sentence among other sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import CursusError, DataError
from tasks.models.exporting import PLAIN, Source, text_lines

if TYPE_CHECKING:
    from pipelines.judging.occurrences import Occurrence

MOST = 500
"""Sentences with the word that are compared, at most: the first of the texts."""
LONGEST = 240
"""Characters of a sentence, at most; longer ones are cut around the word."""
ROWS = 1024
"""Rows of a table that are read together."""
ALIKE = 1 - 1e-5
"""Cosines above this are those of one vector, rounded in several sentences."""
_ENDS = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n+")


@dataclass(frozen=True)
class Neighbour:
    """A word, or an occurrence of the word in a sentence, and its cosine."""

    cosine: float
    text: str
    start: int = 0
    end: int = 0
    """Characters of `text` that are the word; 0 and 0 where `text` is a word."""


@dataclass(frozen=True)
class Neighbours:
    """The answer: neighbours, the most similar first, and what they were chosen from."""

    word: str
    neighbours: tuple[Neighbour, ...]
    compared: int
    """Words, or sentences with the word."""
    contextual: bool
    """Whether the sentence made a difference: False for a model with one vector for each word."""
    source: str
    """Where the sentences are from; the model's vocabulary for words."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def nearest_words(source: Source, word: str, top: int) -> Neighbours:
    """The `top` words whose input embeddings are nearest to that of `word`.

    Raises CursusError where `word` is not one token of the model.
    """
    from pipelines.judging.evaluations.word_vectors import EmbeddingTable

    table = EmbeddingTable(source.folder)
    nearest = table.neighbours(word, top)
    if nearest is None:
        raise CursusError(
            f"{word!r} is not one token of {source.title}, so that it has no vector of its own; compare its states "
            f'with --in "a sentence that contains {word}"'
        )
    neighbours = tuple(Neighbour(cosine, other) for other, cosine in nearest)
    return Neighbours(word, neighbours, int(table.ordinary.sum()), False, "its vocabulary")


def nearest_occurrences(
    root: Path, source: Source, word: str, sentence: str, texts: Path | None, top: int, layer: int | None = None
) -> Neighbours:
    """The `top` sentences in which the state of `word` is nearest to its state in `sentence`, after `layer`, 0 for the
    embeddings, or after the last layer.

    The sentences are those of the file `texts`, one text a line, or else of the tables of plain text in the model's
    lineage. Raises CursusError where `sentence` does not hold the word, no other sentence does, or the model has no
    such layer; DataError where there are no texts.
    """
    from pipelines.judging.occurrences import Occurrence, cosines, occurrence_states, word_spans
    from pipelines.models.backbone import open_backbone

    if not word.strip():
        raise CursusError("the word is empty")
    spans = word_spans(word, sentence)
    if not spans:
        raise CursusError(f"--in: the sentence does not contain {word!r}, as a whole word; give one that does")
    where, lines = _texts(root, source, texts)
    others = list(islice(_sentences(word, sentence, lines), MOST))
    if not others:
        raise CursusError(f"{where}: no other sentence contains {word!r}; give texts that do with --texts FILE")
    backbone, tokenizer = open_backbone(source.folder)
    states = occurrence_states(backbone, tokenizer, [Occurrence(word, sentence, *spans[0]), *others])
    if layer is not None and not 0 <= layer < len(states):
        raise CursusError(f"--layer {layer}: {source.title} has layers 0 (the embeddings) to {len(states) - 1}")
    chosen = states[-1 if layer is None else layer]
    similar = cosines(chosen[:1], chosen[1:])[0]
    order = sorted(range(len(others)), key=lambda row: -float(similar[row]))[:top]
    neighbours = tuple(
        Neighbour(round(float(similar[row]), 4), others[row].text, others[row].start, others[row].end) for row in order
    )
    known = chosen[1:].any(1)
    return Neighbours(word, neighbours, len(others), bool((similar[known] < ALIKE).any()), where)


def _texts(root: Path, source: Source, texts: Path | None) -> tuple[str, Iterator[str]]:
    """What the texts are, and the texts."""
    if texts is not None:
        return str(texts), text_lines(texts)
    tables = {
        name: root / source.tables[name].path
        for name in PLAIN
        if name in source.tables and (root / source.tables[name].path).exists()
    }
    if not tables:
        raise DataError(
            f"{source.title}: no table of plain text of its lineage exists, so there are no sentences to compare with; "
            "pass some with --texts FILE, one per line"
        )
    names = ", ".join(tables)
    return f"the texts of its lineage ({names})", chain.from_iterable(_column(path) for path in tables.values())


def _column(path: Path) -> Iterator[str]:
    import pyarrow.dataset

    for batch in pyarrow.dataset.dataset(path).to_batches(columns=["text"], batch_size=ROWS):
        yield from batch.column("text").to_pylist()


def _sentences(word: str, sentence: str, texts: Iterable[str]) -> Iterator[Occurrence]:
    """The sentences of `texts` that hold `word`, each once, without `sentence`."""
    from pipelines.judging.occurrences import Occurrence, word_spans

    seen = {_normal(sentence)}
    plain = word.lower()
    for text in texts:
        if plain not in text.lower():
            continue
        for other in _ENDS.split(text):
            if not (spans := word_spans(word, other)):
                continue
            start, end = spans[0]
            first = max(0, min(start - (LONGEST - (end - start)) // 2, len(other) - LONGEST))
            cut = other[first : max(first + LONGEST, end)]
            kept = cut.strip()
            before = first + len(cut) - len(cut.lstrip())
            if _normal(kept) not in seen:
                seen.add(_normal(kept))
                yield Occurrence(word, kept, start - before, end - before)


def _normal(text: str) -> str:
    return " ".join(text.lower().split())
