"""Link prediction: the missing entity of a knowledge graph's fact."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.task_families import Answer, Lookup, Problem, Row, SideTable, TaskFamily, empty_text_problem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CUTS = (1, 3, 10)
_SIDES = ("head", "tail")
_NAMED = ("head", "relation", "tail")
_TEXTS = ("head_name", "head_description", "relation_name", "tail_name", "tail_description")
_OTHERS = {"head": "other_heads", "tail": "other_tails"}


class LinkPrediction(TaskFamily, name="link_prediction"):
    """Predict the head and the tail of facts in a knowledge graph; filtered mean reciprocal rank and hits.

    Each fact yields two queries, (?, relation, tail) and (head, relation, ?); an answer ranks entities for one or both.
    Filtered (Bordes et al. 2013, §4.2): other entities that complete a fact of any part are removed from the ranking
    before the rank of the correct one is taken.
    """

    paper: ClassVar[str] = "doi:10.5555/2999792.2999923"
    columns: ClassVar[dict[str, str]] = {
        "head": "string",
        "relation": "string",
        "tail": "string",
        "head_name": "string",
        "head_description": "string",
        "relation_name": "string",
        "tail_name": "string",
        "tail_description": "string",
        "other_heads": "string",
        "other_tails": "string",
    }
    """`other_heads` and `other_tails` hold one entity per line; they are empty in training rows, which must not reveal
    facts of other parts."""
    fields: ClassVar[dict[str, str] | None] = {"head": "string", "relation": "string", "tail": "string"}
    side_tables: ClassVar[dict[str, SideTable]] = {
        "entities": SideTable({"id": "string", "name": "string", "description": "string"}, frozenset({"description"})),
        "relations": SideTable({"id": "string", "name": "string"}),
    }
    target: ClassVar[tuple[str, ...]] = ("tail", "tail_name", "tail_description", "other_heads", "other_tails")
    metrics: ClassVar[tuple[str, ...]] = ("mrr", *(f"hits_at_{cut}" for cut in _CUTS))

    def text(self, row: Row) -> str:
        """Names of head, relation and, if present, tail: without its tail, a fact is not distinct from others.

        A name that several entities share includes the id (see `complete`), so that no two facts have the same text.
        """
        return "\n".join([row["head_name"], row["relation_name"], row.get("tail_name", "")]).rstrip()

    def join_side_tables(self, record: Row, tables: Mapping[str, Lookup]) -> dict[str, Any]:
        """Names and descriptions for the ids of a fact; empty for an unknown id."""
        entities, relations = tables["entities"], tables["relations"]
        head, tail = (entities.get(record[side], {}) for side in _SIDES)
        return {
            **{name: record[name] for name in _NAMED},
            "head_name": head.get("name", ""),
            "head_description": head.get("description", ""),
            "relation_name": relations.get(record["relation"], {}).get("name", ""),
            "tail_name": tail.get("name", ""),
            "tail_description": tail.get("description", ""),
            "other_heads": "",
            "other_tails": "",
        }

    def problem(self, row: Row) -> Problem | None:
        """An empty id, or an entity or relation without a name."""
        if problem := empty_text_problem(row, "head", "relation", "tail"):
            return problem
        for column, table in (("head", "entities"), ("relation", "relations"), ("tail", "entities")):
            if not (row[f"{column}_name"] or "").strip():
                message = f"the column {column!r} holds {row[column]!r}, which has no name in {table!r}"
                return Problem(f"{column} is not in {table}", message)
        return None

    def repair_texts(self, row: Row, repair: Callable[[str], str]) -> dict[str, Any]:
        """Repair names and descriptions; ids are not text."""
        return {name: repair(row[name]) if name in _TEXTS else row[name] for name in self.columns}

    def complete(self, parts: Mapping[str, Sequence[dict[str, Any]]]) -> None:
        """Make names unique, and set the other correct heads and tails, over all parts, of facts outside training."""
        facts = [fact for rows in parts.values() for fact in rows]
        owners: dict[str, set[str]] = defaultdict(set)
        tails: dict[tuple[str, str], set[str]] = defaultdict(set)
        heads: dict[tuple[str, str], set[str]] = defaultdict(set)
        for fact in facts:
            for column in _NAMED:
                owners[_words(fact[f"{column}_name"])].add(fact[column])
            tails[fact["head"], fact["relation"]].add(fact["tail"])
            heads[fact["relation"], fact["tail"]].add(fact["head"])
        for fact in facts:
            for column in _NAMED:
                name = fact[f"{column}_name"]
                if len(owners[_words(name)]) > 1:
                    fact[f"{column}_name"] = f"{name} ({fact[column]})"
        for part, rows in parts.items():
            for fact in rows if part != "train" else ():
                fact["other_heads"] = _lines(heads[fact["relation"], fact["tail"]] - {fact["head"]})
                fact["other_tails"] = _lines(tails[fact["head"], fact["relation"]] - {fact["tail"]})

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """The relations, sorted. Entities are an open set: a model that reads names can rank entities unseen in
        training."""
        return sorted({row["relation"] for row in rows})

    def gold(self, row: Row) -> Answer:
        """Side → the correct entity, and the other correct ones."""
        return {side: (row[side], frozenset((row[_OTHERS[side]] or "").splitlines())) for side in _SIDES}

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 5]: number of ranked sides; sums over them of 1 / rank and of hits at 1, 3 and 10.

        An answer maps `head` and `tail` to entities, best first; a correct entity that is missing has no rank.
        """
        import numpy as np

        rows = np.zeros((len(gold), 2 + len(_CUTS)))
        for row, right, given in zip(rows, gold, answers, strict=True):
            for side, ranked in given.items():
                rank = _rank(ranked, *right[side])
                row += [1, 1 / rank if rank else 0, *(bool(rank) and rank <= cut for cut in _CUTS)]
        return rows

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """Means over all queries, 0 to 1."""
        queries, *sums = statistics.sum(axis=0)
        return {
            name: float(value / queries) if queries else 0.0 for name, value in zip(self.metrics, sums, strict=True)
        }

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`head: … relation: … tail:` (Saxena et al. 2022, arXiv:2203.10321, §3)"""
        description = f", {row['head_description']}" if row["head_description"] else ""
        return f"head: {row['head_name']}{description} relation: {row['relation_name']} tail:"

    def answer_text(self, row: Row) -> str:
        """The name of the tail."""
        return str(row["tail_name"])

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """A ranking of one: the tail if its name was written, else the text, which matches no entity."""
        name = " ".join(text.split())
        return {"tail": [row["tail"] if name == " ".join(row["tail_name"].split()) else name]}


def _rank(ranked: Sequence[str], right: str, others: frozenset[str]) -> int:
    """Rank of `right` in `ranked` without `others`, from 1; 0 if it is missing."""
    rank = 0
    for entity in ranked:
        rank += entity not in others
        if entity == right:
            return rank
    return 0


def _words(name: str) -> str:
    """Normalise a name to its words, without case and punctuation, as texts are compared in deduplication."""
    return " ".join(re.findall(r"\w+", name.casefold()))


def _lines(entities: set[str]) -> str:
    return "\n".join(sorted(entities))
