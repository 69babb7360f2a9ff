"""Facts that a masked language model recalls (Petroni et al. 2019, LAMA; Peters et al. 2019, KnowBert §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field as Option

from pipelines.components import discover
from pipelines.errors import RecipeError
from pipelines.judging.certainty.resampling import RESAMPLES, interval
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.figures import RecordedFigure, quotient
from pipelines.networks.entity_graph import name_of, read_graph
from pipelines.networks.graph_files import GraphFiles, graph_paths
from pipelines.parts.backbones import Backbone
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.models.opening import OpenedModel
    from pipelines.task_families import TaskFamily

FIELDS = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, Field.MASKED_POSITIONS})
"""Fields that a head may need."""
TOKENS = 12.0
"""Tokens of a sentence, approximately."""
SHOWN = 80
"""Characters of a fact in a message."""


@dataclass(frozen=True)
class FactSentence:
    """A fact as a sentence, with one of its ends hidden."""

    text: str
    hidden: tuple[int, int]
    """Characters of the hidden end."""


class FactRecallEvaluation(Evaluation, name="fact_recall"):
    """Mean reciprocal rank, in the whole vocabulary, of the tokens of an entity that are hidden in a fact about it.

    A fact is the sentence of its subject, predicate and object, which is read twice: without its subject, and without
    its object; all tokens of the hidden end are masked at once. A name is written without the sense that is meant. A
    token with the score of the hidden one ranks before it. The facts are the items of the intervals.
    """

    paper = "arXiv:1909.04164"
    judges = "language models"
    needs_signals = frozenset({Signal.MASKED_LOGITS})

    graphs: GraphFiles = Option(min_length=1)
    """UTF-8 files of tab-separated lines of subject, predicate and object, or of a term and the term that it is a kind
    of. Relative to the current directory, or else to what is shipped."""
    facts: int = Option(500, ge=1, le=10_000_000)
    """Facts that every model reads, the same for all: a random sample if the graph has more."""

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return graph_paths(self.graphs)

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [RecordedFigure(cls.name, cls.name, quotient(1), bounds=(0.0, 1.0))]

    def tiny(self) -> Self:
        return self.model_copy(update={"facts": min(self.facts, 4)})

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        return [ForwardPasses(2 * self.facts, TOKENS, scored=2)]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        """Raises RecipeError for a model that needs more than a row with its masked positions."""
        import torch

        from pipelines.models.opening import open_model

        torch.set_num_threads(context.threads)
        sentences = self.sentences(context.seed)
        stages, headline = [], {}
        for stage, models in context.language_models.items():
            samples = []
            for model in models:
                recalled = reciprocal_ranks(open_model(model.folder, "cpu"), sentences)
                # both sentences of a fact are one item
                samples.append(recalled.reshape(-1, 2, 2).sum(1))
                context.keep(self.name, model, samples[-1])
            recall = interval(quotient(1), samples, context.seed)
            stages.append(
                {"stage": stage, "seeds": [model.seed for model in models], "reciprocal_rank": recall.record()}
            )
            headline[f"{self.name}/{stage}"] = recall.mean
        return {"facts": len(sentences) // 2, "resamples": RESAMPLES, "stages": stages, "headline": headline}

    def sentences(self, seed: int) -> list[FactSentence]:
        """Two sentences for each fact of the sample: without its subject, then without its object."""
        graph = read_graph(self.reads_files)
        random = np.random.default_rng([seed, 23])
        result = []
        for row in np.sort(random.permutation(len(graph.facts))[: self.facts]).tolist():
            head, relation, tail = graph.facts[row].tolist()
            subject, target = name_of(graph.entities[head]), name_of(graph.entities[tail])
            text = f"{subject} {graph.relations[relation]} {target}."
            end = len(text) - 1
            result += [FactSentence(text, (0, len(subject))), FactSentence(text, (end - len(target), end))]
        return result


def reciprocal_ranks(opened: OpenedModel, sentences: Sequence[FactSentence]) -> NDArray[np.float64]:
    """[N, 2]: the sum of 1 / rank over the hidden tokens of each sentence, and their number.

    A rank counts the tokens that score as high or higher, the hidden one among them. Raises RecipeError where the head
    or an annotation needs more than tokens, and for a fact that is longer than the model's rows.
    """
    import torch

    from pipelines.judging.evaluations.held_out import batches
    from pipelines.task_families.encoding import attention_masks, pad_rows

    head, tokenizer = opened.record.head, opened.tokenizer
    more = [*sorted(head.needs - FIELDS), *sorted(one.name for one in opened.record.annotations)]
    if more:
        raise RecipeError(
            f"evaluation fact_recall: the model needs {', '.join(more)} to predict a token; name a stage that was "
            "trained on masked tokens only"
        )
    encoded = [tokenizer(one.text, return_offsets_mapping=True) for one in sentences]
    rows = [np.asarray(one["input_ids"], dtype=np.int64) for one in encoded]
    limit = _longest_row(opened)
    for sentence, row in zip(sentences, rows, strict=True):
        if limit is not None and len(row) > limit:
            raise RecipeError(
                f"evaluation fact_recall: the fact {shorten(sentence.text, SHOWN)!r} has {len(row)} tokens, and the "
                f"model reads at most {limit}; leave it out of the graph, or name a stage with more positions"
            )
    hidden = [
        np.asarray(
            [at for at, (begin, end) in enumerate(one["offset_mapping"]) if begin < end and _within(begin, end, given)]
        )
        for one, given in zip(encoded, (one.hidden for one in sentences), strict=True)
    ]
    result = np.zeros((len(sentences), 2))
    for chosen in batches(rows):
        ids = pad_rows([rows[one] for one in chosen], int(tokenizer.pad_token_id or 0), multiple=1)
        width = ids.shape[1]
        owners = np.repeat(chosen, [len(hidden[one]) for one in chosen])
        flat = np.concatenate([row * width + hidden[one] for row, one in enumerate(chosen)]).astype(np.int64)
        expected = torch.from_numpy(ids.reshape(-1)[flat])
        ids.reshape(-1)[flat] = int(tokenizer.mask_token_id)
        batch = {
            Field.INPUT_IDS: torch.from_numpy(ids),
            Field.ATTENTION_MASK: torch.from_numpy(attention_masks([rows[one] for one in chosen], width)),
            Field.MASKED_POSITIONS: torch.from_numpy(flat),
        }
        with torch.inference_mode():
            logits = head.signals(opened.network, batch, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS]
            # tokens that score as high, or whose score is no number, rank before the hidden one
            ranks = (~(logits < logits.gather(1, expected[:, None]))).sum(1)
        np.add.at(result, owners, np.stack([1 / ranks.numpy(), np.ones(len(ranks))], axis=1))
    return result


def _longest_row(opened: OpenedModel) -> int | None:
    """Most tokens that a model reads at once; None where there is no limit, or none that is known."""
    discover(Backbone.__module__)
    members = [member for member in Backbone.members.values() if issubclass(member, Backbone)]
    config = opened.network.config.to_dict()
    known = next((one for member in members if (one := member.recognise(config))), None)
    return None if known is None else known.max_length


def _within(begin: int, end: int, hidden: tuple[int, int]) -> bool:
    """Whether a token with these characters shares one with the hidden ones."""
    return begin < hidden[1] and end > hidden[0]
