"""Attention heads that attend from a word to its syntactic head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from pydantic import PositiveInt

from pipelines.errors import DataError
from pipelines.judging.certainty.significance import holm_corrected
from pipelines.judging.figures import RecordedFigure
from pipelines.judging.probes import LAYERS, ExampleProbe, Observation, ProbedStage
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.judging.probes.model import ProbedModel

OFFSETS = (*range(-10, 0), *range(1, 11))
"""Relative positions that the baseline tries."""
BEST, BASELINE = "best", "baseline"


class AttentionRelationsProbe(ExampleProbe, name="attention_relations"):
    """How often the word that an attention head attends to most is the dependent's syntactic head, by relation (Clark
    et al. 2019, §4.2).

    The attention head of each relation, and the fixed offset it is compared with, are chosen on the training table and
    scored on the test table, so that selection among many heads does not inflate the score. Special tokens and the word
    itself do not count as attended. A layer's score is the mean over relations of its best heads.
    """

    paper = "arXiv:1906.04341"
    reads = frozenset({"dependency_parsing"})
    incompatible_abilities: ClassVar[Mapping[Ability, str]] = {
        Ability.STATIC: "one vector per word whatever its context, and no attention",
        Ability.RECURRENT: "a recurrent state, and no attention weights",
    }
    metrics = ("accuracy",)

    least: PositiveInt = 20
    """Minimum number of training words of a relation."""

    def tiny(self) -> Self:
        return super().tiny().model_copy(update={"least": 1})

    def observe(self, model: ProbedModel) -> Observation:
        rows, others = (model.examples.rows(table)[: self.examples] for table in self.tables)
        known, test_arcs = (_arcs(model, part) for part in (rows, others))
        counted = Counter(relation for arcs in known for _, _, relation in arcs)
        relations = sorted(relation for relation, number in counted.items() if number >= self.least)
        if not relations:
            raise DataError(
                f"probe attention_relations: no relation has {self.least} words in the training table; lower `least`"
            )
        hits, offsets = self._hits(model, rows, known, relations)
        # summed over sentences: [layers, heads, relations] and [offsets, relations]
        best_head = hits.sum(0).argmax(1)
        best_offset = offsets.sum(0).argmax(0)
        tested, tested_offsets = self._hits(model, others, test_arcs, relations)
        words = _words(test_arcs, relations)
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
        present = words > 0
        return float((right[present] / words[present]).mean()) if present.any() else 0.0

    def figures(self) -> Sequence[RecordedFigure]:
        return ()

    def record(self, stages: Sequence[ProbedStage], seed: int) -> dict[str, Any]:
        from pipelines.judging.certainty.resampling import interval, paired_difference

        section = super().record(stages, seed)
        for entry, stage in zip(section["stages"], stages, strict=True):
            best, baseline = ([one.statistics[name] for one in stage.observations] for name in (BEST, BASELINE))
            entry["relations"], family = [], []
            for number, relation in enumerate(stage.observations[0].notes["relations"]):
                columns = [number, number + best[0].shape[1] // 2]
                of_head, of_offset = ([one[:, columns] for one in each] for each in (best, baseline))
                entry["relations"].append(
                    {
                        "relation": relation,
                        "words": stage.observations[0].notes["words"][number],
                        "heads": [one.notes["heads"][number] for one in stage.observations],
                        "accuracy": interval(_share, of_head, seed).record(),
                        "offset": stage.observations[0].notes["offsets"][number],
                        "offset_accuracy": interval(_share, of_offset[:1], seed).record(),
                    }
                )
                family.append(paired_difference(_share, of_offset[:1], of_head, seed))
            for relation_entry, above in zip(entry["relations"], holm_corrected(family), strict=True):
                relation_entry["above_offset"] = above
        return section

    def _hits(
        self,
        model: ProbedModel,
        rows: Sequence[Mapping[str, Any]],
        arcs: Sequence[Sequence[tuple[int, int, str]]],
        relations: Sequence[str],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Words whose syntactic head is predicted: by each attention head [sentences, layers, heads, relations], and by
        each offset [sentences, offsets, relations]."""
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
    """The other word that each word attends to most, [layers, heads, words], of `attention` [layers, heads, words,
    words].

    −1 if it attends to no other word, as the first word of an autoregressive model does.
    """
    others = attention.copy()
    size = attention.shape[-1]
    others[..., np.arange(size), np.arange(size)] = 0.0
    attended: NDArray[np.int64] = np.where(others.max(-1) > 0, others.argmax(-1), -1)
    return attended


def _arcs(model: ProbedModel, rows: Sequence[Mapping[str, Any]]) -> list[list[tuple[int, int, str]]]:
    """(word, head, relation) of every arc of each sentence, words counted from 0; the root has no arc."""
    return [
        [(word, head - 1, relation) for word, (head, relation) in enumerate(model.family.gold(row)) if head > 0]
        for row in rows
    ]


def _words(arcs: Sequence[Sequence[tuple[int, int, str]]], relations: Sequence[str]) -> NDArray[np.float64]:
    """Number of words of each relation, [sentences, relations]."""
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
