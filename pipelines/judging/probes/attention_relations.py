"""Which attention heads point from a word to its syntactic head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from pydantic import PositiveInt

from pipelines.errors import DataError
from pipelines.judging.certainty.significance import holm_corrected
from pipelines.judging.probes import LAYERS, ExampleProbe, Observation, ProbedStage
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.judging.probes.model import ProbedModel

OFFSETS = (*range(-10, 0), *range(1, 11))
"""Places beside a word that the baseline tries."""
BEST, BASELINE = "best", "baseline"


class AttentionRelationsProbe(ExampleProbe, name="attention_relations"):
    """How often the word that a head attends to most is the head of the dependent, by relation (Clark et al. 2019, §4.2).

    The attention head of a relation, and the fixed offset that it is compared with, are chosen on the training table and scored
    on the test table, so that the best of many is not praised for luck. The frame of a sentence and the word itself do not
    count as attended. A layer scores the mean over relations of its best heads.
    """

    paper = "arXiv:1906.04341"
    reads = frozenset({"dependency_parsing"})
    cannot: ClassVar[Mapping[Ability, str]] = {
        Ability.STATIC: "one vector a word, whatever stands around it, and no attention",
        Ability.RECURRENT: "a state that goes from word to word, and no attention weights",
    }
    metrics = ("accuracy",)

    least: PositiveInt = 20
    """Words of a relation in the training sentences from which it is looked at."""

    def tiny(self) -> Self:
        return super().tiny().model_copy(update={"least": 1})

    def look(self, model: ProbedModel) -> Observation:
        rows, others = (model.examples.rows(table)[: self.examples] for table in self.tables)
        known, asked = (_arcs(model, part) for part in (rows, others))
        counted = Counter(relation for arcs in known for _, _, relation in arcs)
        relations = sorted(relation for relation, number in counted.items() if number >= self.least)
        if not relations:
            raise DataError(f"probe attention_relations: no relation has {self.least} words; lower `least`")
        hits, offsets = self._hits(model, rows, known, relations)
        # [layers, heads, relations] of all sentences
        best_head = hits.sum(0).argmax(1)
        best_offset = offsets.sum(0).argmax(0)
        tested, tested_offsets = self._hits(model, others, asked, relations)
        words = _words(asked, relations)
        layers, every = tested.shape[1], np.arange(len(relations))
        of_layers = np.stack([tested[:, layer, best_head[layer], every] for layer in range(layers)])
        top = hits.sum(0).max(1).argmax(0)
        heads = [{"layer": int(top[n]) + 1, "head": int(best_head[top[n], n])} for n in every]
        notes = {
            "relations": relations,
            "words": words.sum(0).astype(int).tolist(),
            "heads": heads,
            "offsets": [OFFSETS[int(one)] for one in best_offset],
            "sentences": len(others),
        }
        chosen = tested[:, top, best_head[top, every], every]
        offset = tested_offsets[:, best_offset, every]
        return Observation(
            {
                LAYERS: np.concatenate([of_layers, np.broadcast_to(words, (layers, *words.shape))], axis=2),
                BEST: np.concatenate([chosen, words], axis=1),
                BASELINE: np.concatenate([offset, words], axis=1),
            },
            first_layer=1,
            notes=notes,
        )

    def score(self, metric: str, statistics: NDArray[np.float64]) -> float:
        right, words = np.split(statistics.sum(axis=0), 2)
        asked = words > 0
        return float((right[asked] / words[asked]).mean()) if asked.any() else 0.0

    def record(self, stages: Sequence[ProbedStage], seed: int) -> dict[str, Any]:
        from pipelines.judging.certainty.resampling import interval, paired_difference

        found = super().record(stages, seed)
        for entry, stage in zip(found["stages"], stages, strict=True):
            best, baseline = ([one.statistics[name] for one in stage.seen] for name in (BEST, BASELINE))
            entry["relations"], family = [], []
            for number, relation in enumerate(stage.seen[0].notes["relations"]):
                columns = [number, number + best[0].shape[1] // 2]
                mine, other = ([one[:, columns] for one in each] for each in (best, baseline))
                entry["relations"].append(
                    {
                        "relation": relation,
                        "words": stage.seen[0].notes["words"][number],
                        "heads": [one.notes["heads"][number] for one in stage.seen],
                        "accuracy": interval(_share, mine, seed).record(),
                        "offset": stage.seen[0].notes["offsets"][number],
                        "offset_accuracy": interval(_share, other[:1], seed).record(),
                    }
                )
                family.append(paired_difference(_share, other[:1], mine, seed))
            for relation_entry, above in zip(entry["relations"], holm_corrected(family), strict=True):
                relation_entry["above_offset"] = above
        return found

    def _hits(
        self,
        model: ProbedModel,
        rows: Sequence[Mapping[str, Any]],
        arcs: Sequence[Sequence[tuple[int, int, str]]],
        relations: Sequence[str],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Words whose head is found: by each attention head [sentences, layers, heads, relations], and by each offset
        [sentences, offsets, relations]."""
        number = {relation: index for index, relation in enumerate(relations)}
        hits: NDArray[np.float64] | None = None
        offsets = np.zeros((len(rows), len(OFFSETS), len(relations)))
        for sentence, own in enumerate(arcs):
            for word, head, relation in own:
                if relation in number and head - word in OFFSETS:
                    offsets[sentence, OFFSETS.index(head - word), number[relation]] += 1
        for sentence, attention in model.attention([list(row["words"]) for row in rows]):
            if hits is None:
                hits = np.zeros((len(rows), *attention.shape[:2], len(relations)))
            attended = most_attended(attention)
            for word, head, relation in arcs[sentence]:
                if relation in number:
                    hits[sentence, :, :, number[relation]] += attended[:, :, word] == head
        assert hits is not None
        return hits, offsets


def most_attended(attention: NDArray[np.float32]) -> NDArray[np.int64]:
    """[layers, heads, words]: the other word that each attends to most, of `attention` [layers, heads, words, words]; −1
    where it attends to none, as the first word of a body that reads from left to right does."""
    others = attention.copy()
    size = attention.shape[-1]
    others[..., np.arange(size), np.arange(size)] = 0.0
    found: NDArray[np.int64] = np.where(others.max(-1) > 0, others.argmax(-1), -1)
    return found


def _arcs(model: ProbedModel, rows: Sequence[Mapping[str, Any]]) -> list[list[tuple[int, int, str]]]:
    """Word, head and relation of every arc of each sentence, words counted from 0; the root has none."""
    return [
        [(word, head - 1, relation) for word, (head, relation) in enumerate(model.family.gold(row)) if head > 0]
        for row in rows
    ]


def _words(arcs: Sequence[Sequence[tuple[int, int, str]]], relations: Sequence[str]) -> NDArray[np.float64]:
    """[sentences, relations]: words of each relation."""
    counts = np.zeros((len(arcs), len(relations)))
    number = {relation: index for index, relation in enumerate(relations)}
    for sentence, own in enumerate(arcs):
        for _, _, relation in own:
            if relation in number:
                counts[sentence, number[relation]] += 1
    return counts


def _share(statistics: NDArray[np.float64]) -> float:
    right, words = statistics.sum(axis=0)
    return float(right / words) if words else 0.0
