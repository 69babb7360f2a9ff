"""Sentence trees: rows of tokens whose entities have branches, the facts about them (Liu et al. 2019, K-BERT §3.2–3.3).

The paper writes a tree as one sequence, each branch after its entity (hard positions), and gives every token the
position it has along its branch (soft positions). A network with absolute positions sees soft positions alone, so that
the branches may stand anywhere in the row: here they stand after its text.

    hard    0     1   2    3   4     5  6        7       8       9     10   11   12
    token   [CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now
    soft    0     1   2    3   4     3  4        5       6       7     6    7    6
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pipelines.task_families.encoding import IGNORED, MULTIPLE, FieldArrays
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerFast

LEADING_SPACES = ("Ġ", "▁")
"""Marks with which byte-level and SentencePiece tokenizers write a space before a word."""
INJECTED = {Field.ATTENTION_MASK: 0, Field.TAG_LABELS: IGNORED, Field.ANSWERABLE: 0}
"""Field with one value for each token → its value at injected tokens; token types are those of the entity."""


class Match(NamedTuple):
    """An occurrence of an entity in a row."""

    begin: int
    end: int
    facts: tuple[tuple[int, ...], ...]
    """Token ids of each fact."""


@dataclass(frozen=True)
class Graph:
    """Entities and facts about them as token ids."""

    facts: Mapping[tuple[int, ...], tuple[tuple[int, ...], ...]]
    """Token ids of an entity → those of each fact about it."""
    lengths: Mapping[int, tuple[int, ...]]
    """First token of entities → their numbers of tokens, longest first."""
    continues: NDArray[np.bool_]
    """bool [V]: whether a token continues the word of the token before it, unless that one is special."""
    special: frozenset[int]
    padding: int

    @classmethod
    def of(cls, facts: Mapping[str, list[str]], tokenizer: PreTrainedTokenizerFast) -> Graph:
        """The graph of `facts`, entity → facts about it, in the tokens of `tokenizer`."""
        fast = tokenizer.backend_tokenizer
        fast.no_truncation()
        fast.no_padding()
        marks = any(token.startswith(LEADING_SPACES) for token in tokenizer.get_vocab())
        known: dict[tuple[int, ...], tuple[tuple[int, ...], ...]] = {}
        # a word inside a text has a leading space, the first one of a text may not
        for lead in ("", " ") if marks else ("",):
            flat = [lead + fact for about in facts.values() for fact in about]
            branches = iter(fast.encode_batch_fast(flat, add_special_tokens=False))
            entities = fast.encode_batch_fast([lead + name for name in facts], add_special_tokens=False)
            for entity, about in zip(entities, facts.values(), strict=True):
                ids = [tuple(next(branches).ids) for _ in about]
                if entity.ids:
                    known.setdefault(tuple(entity.ids), tuple(one for one in ids if one))
        lengths: dict[int, set[int]] = {}
        for tokens in known:
            lengths.setdefault(tokens[0], set()).add(len(tokens))
        continues = np.zeros(max(tokenizer.get_vocab().values()) + 1, dtype=np.bool_)
        for token, index in tokenizer.get_vocab().items():
            inside = marks and token[:1].isascii() and token[:1].isalnum()
            continues[index] = token.startswith("##") or inside
        return cls(
            known,
            {first: tuple(sorted(sizes, reverse=True)) for first, sizes in lengths.items()},
            continues,
            frozenset(tokenizer.all_special_ids),
            int(tokenizer.pad_token_id or 0),
        )

    def matches(self, row: list[int]) -> Iterator[Match]:
        """The entities in `row`, from left to right, the longest that begins at each token."""
        at = 0
        while at < len(row):
            end = at + 1
            inside = self.continues[row[at]] and at > 0 and row[at - 1] not in self.special
            for size in () if inside else self.lengths.get(row[at], ()):
                facts = self.facts.get(tuple(row[at : at + size]))
                after = row[at + size] if at + size < len(row) else None
                if facts is not None and (after is None or not self.continues[after]):
                    end = at + size
                    yield Match(at, end, facts)
                    break
            at = end


def inject(batch: FieldArrays, graph: Graph, most: int, length: int) -> FieldArrays:
    """`batch` with the facts of `graph` about the entities of its rows, at most `most` tokens in a row.

    A fact whose soft positions would reach `length`, and one that finds no room, is left out whole. Adds `BRANCHES`,
    `ENTITIES` and, where there are none, `POSITION_IDS`, and as many columns to all fields of tokens as the row with
    the most facts needs.
    """
    ids, mask = batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK]
    rows, width = ids.shape
    positions = batch.get(Field.POSITION_IDS, np.broadcast_to(np.arange(width), ids.shape))
    entities = np.zeros((rows, width + most), dtype=np.int64)
    branches, soft, sources = (np.zeros((rows, width + most), dtype=np.int64) for _ in range(3))
    added = np.full((rows, most), graph.padding, dtype=np.int64)
    soft[:, :width] = positions
    sources[:] = np.minimum(np.arange(width + most), width - 1)
    widest = 0
    for row in range(rows):
        used = number = 0
        for entity, match in enumerate(graph.matches(ids[row, : int(mask[row].sum())].tolist()), 1):
            first = int(positions[row, match.end - 1]) + 1
            for fact in match.facts:
                if used + len(fact) > most or first + len(fact) > length:
                    continue
                number += 1
                columns = slice(width + used, width + used + len(fact))
                added[row, used : used + len(fact)] = fact
                branches[row, columns], entities[row, columns] = number, entity
                soft[row, columns] = np.arange(first, first + len(fact))
                sources[row, columns] = match.end - 1
                entities[row, match.begin : match.end] = entity
                used += len(fact)
        widest = max(widest, used)
    total = width + -(-widest // MULTIPLE) * MULTIPLE
    result = {
        **batch,
        Field.INPUT_IDS: np.concatenate([ids, added], axis=1)[:, :total],
        Field.POSITION_IDS: soft[:, :total],
        Field.BRANCHES: branches[:, :total],
        Field.ENTITIES: entities[:, :total],
    }
    for name, value in INJECTED.items():
        if name in batch:
            result[name] = np.pad(batch[name], ((0, 0), (0, total - width)), constant_values=value)
    if Field.TOKEN_TYPE_IDS in batch:
        result[Field.TOKEN_TYPE_IDS] = np.take_along_axis(batch[Field.TOKEN_TYPE_IDS], sources[:, :total], axis=1)
    return result
