"""Graphs of entities in files, and the names by which a text may mention them (Peters et al. 2019, KnowBert §3.1: the
candidate selector)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import DataError

KIND = "is a kind of"
"""Relation of a line with two columns."""
SHORTEST = 3
"""Letters of the shortest name to which endings are added."""
_SENSE = re.compile(r"\s*\([^()]*\)$")


@dataclass(frozen=True)
class EntityGraph:
    """Entities, relations, and facts about them."""

    entities: tuple[str, ...]
    """The name of each entity, with the sense that is meant in parentheses where its name has several."""
    relations: tuple[str, ...]
    facts: NDArray[np.int64]
    """[F, 3]: indices of head, relation and tail."""


def name_of(entity: str) -> str:
    """The name as a text has it: `kernel` of `kernel (statistics)`."""
    return _SENSE.sub("", entity)


@lru_cache(maxsize=8)
def read_graph(paths: tuple[Path, ...]) -> EntityGraph:
    """The graph of all files together: tab-separated lines of subject, predicate and object, or of a term and the term
    that it is a kind of.

    UTF-8; lines that begin with # are remarks, and letters become small. Raises DataError with the file, and the number
    of a line that is none of these, or if no file has a fact.
    """
    entities: dict[str, int] = {}
    relations: dict[str, int] = {}
    facts: dict[tuple[int, int, int], None] = {}
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: cannot be read as a graph ({error})") from None
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            words = [word.strip().lower() for word in line.split("\t")]
            if len(words) not in (2, 3) or not all(name_of(word) for word in words):
                raise DataError(
                    f"{path}:{number}: expected subject, predicate and object, or a term and the term that it is a "
                    f"kind of, separated by tabs, got {line.strip()[:60]!r}"
                )
            head, relation, tail = words if len(words) == 3 else (words[0], KIND, words[1])
            ends = [entities.setdefault(one, len(entities)) for one in (head, tail)]
            facts[ends[0], relations.setdefault(relation, len(relations)), ends[1]] = None
    if not facts:
        raise DataError(f"{', '.join(map(str, paths)) or 'no file'}: the graph has no facts")
    return EntityGraph((*entities,), (*relations,), np.asarray([*facts], dtype=np.int64))


def senses_of_names(
    graph: EntityGraph, endings: Sequence[str], left_out: Sequence[str] = ()
) -> Mapping[str, Mapping[int, float]]:
    """Name → index and prior probability of each entity that it may mention; probabilities of a name add up to 1.

    The prior is an entity's share of the facts about all that share its name, as no counts of links exist. A name with
    one of `endings` mentions the same entities, unless it is a name itself. Nothing mentions what is a kind of an
    entity in `left_out`, at any depth.
    """
    degrees = np.bincount(graph.facts[:, [0, 2]].ravel(), minlength=len(graph.entities))
    sharing: dict[str, list[int]] = defaultdict(list)
    unmentioned = _below(graph, left_out)
    for index, entity in enumerate(graph.entities):
        if index not in unmentioned:
            sharing[name_of(entity)].append(index)
    names = {
        name: {index: float(degrees[index] / degrees[indices].sum()) for index in indices}
        for name, indices in sharing.items()
    }
    senses = dict(names)
    for name, of_name in names.items():
        for ending in endings if len(name) >= SHORTEST else ():
            senses.setdefault(name + ending, of_name)
    return senses


def _below(graph: EntityGraph, kinds: Sequence[str]) -> set[int]:
    """Indices of the entities that are kinds of one of `kinds`, at any depth."""
    narrower: dict[int, list[int]] = defaultdict(list)
    for head, relation, tail in graph.facts.tolist():
        if graph.relations[relation] == KIND:
            narrower[tail].append(head)
    left = [index for index, entity in enumerate(graph.entities) if entity in kinds]
    result: set[int] = set()
    while left:
        below = set(narrower[left.pop()]) - result
        result |= below
        left += below
    return result
