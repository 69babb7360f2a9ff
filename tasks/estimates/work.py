"""Work of a step, counted before it runs: operations, optimizer steps, characters read, predictions made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.lineage.provenance import DataSource, Provenance
from pipelines.recipe.plan import Step
from pipelines.recipe.schema import Stage
from pipelines.task_families.labelled_tables import MAIN, labelled_table, tasks_in
from pipelines.vocabulary import Ability, Signal
from tasks.estimates.backbone_size import BackboneSize, forward_operations
from tasks.estimates.line_work import lines_of_step, summed

if TYPE_CHECKING:
    from tasks.datasets.prepared import Prepared

USUAL_VOCABULARY = 30_522
CHARACTERS_IN_TOKEN = 4.0
PREDICTED = 0.15
"""Share of the tokens that are predicted under a corruption that has no `rate`."""
ANSWERING = 2.0
"""Cost factor of inference: in float32, and without the kernels of a training step."""
WRITING_SCORES = 4.0
"""Cost factor of scoring the vocabulary in inference: all scores are materialised in float32."""
COMPANION = 0.4
"""Extra work of a companion network that trains along, as a share of the main network's."""


@dataclass(frozen=True)
class TableSize:
    """The size of a table of text or of examples."""

    documents: int
    characters: int
    answers: int = 1
    """Number of answers that its task chooses from."""

    @property
    def characters_each(self) -> float:
        """Mean number of characters per document."""
        return self.characters / max(1, self.documents)


def tables_of(prepared: Prepared) -> dict[str, TableSize]:
    """The sizes of a dataset's tables, by name and by digest."""
    recorded, answers = prepared.summary["tables"], max(1, len(prepared.summary.get("labels", ())))
    by_name = {
        name: TableSize(recorded[name]["documents"], recorded[name]["characters"], answers)
        for name in prepared.tables
        if name in recorded
    }
    return by_name | {prepared.digests[name]: table for name, table in by_name.items()}


@dataclass(frozen=True)
class KnownStep:
    """A planned step, or a computed step with a record."""

    recipe: str
    name: str
    stage: Stage
    parents: Mapping[str, str]
    data: Mapping[str, DataSource]
    checkpoint: Path | None = None
    trained: tuple[int, int] | None = None
    """Trained tokens and optimizer steps of a computed step; None for a planned step. Also None for a stage with early
    stopping, whose full budget counts, so that the effect of early stopping is part of the recorded ratio."""

    @classmethod
    def planned(cls, step: Step) -> KnownStep:
        return cls(step.recipe, step.name, step.stage, step.parents, step.data, step.checkpoint)

    @classmethod
    def recorded(cls, record: Provenance) -> KnownStep:
        """The step of a record. Raises ValueError when this version cannot parse its stage."""
        stage = Stage.model_validate(record.identity["stage"])
        done = (int(record.result.get("tokens", 0)), int(record.result.get("steps", 0)))
        trained = done if stage.budget.patience is None else None
        return cls(record.recipe, record.stage, stage, record.parents, record.data, None, trained)


@dataclass(frozen=True)
class Work:
    """Amounts of everything that takes time in a step."""

    tokens: int = 0
    """Tokens trained on."""
    steps: int = 0
    """Optimizer steps."""
    layers: float = 0.0
    operations: float = 0.0
    """Floating-point operations of the backbone: one forward pass, plus twice that for the backward pass in
    training."""
    scoring: float = 0.0
    """Floating-point operations of scoring the vocabulary."""
    characters: float = 0.0
    """Characters read and tokenised."""
    learnt: float = 0.0
    """Characters that a new tokenizer is trained on."""
    passed: float = 0.0
    """Tokens that an estimate reads in its passes over the text, each time that it does."""
    answers: float = 0.0
    """Predictions outside training."""
    written: float = 0.0
    """Predictions generated token by token, times the backbone's hidden size."""
    models: int = 0
    """Models that are evaluated."""
    conversions: int = 0
    """Conversions to another runtime."""
    analyses: int = 0
    """Number of evaluations and probes."""


def work_of(one: KnownStep, others: Mapping[str, KnownStep], tables: Mapping[str, TableSize]) -> Work:
    """Rough amounts of work of a step. `others` are steps by fingerprint, including `one`'s ancestors; `tables` are the
    dataset's, by digest and by name: a record of other data is assumed to have had as many examples."""
    stage = one.stage
    if stage.kind.judges:
        return _judged(one, others, tables)
    if stage.lines:
        return summed([work_of(line, others, tables) for line in lines_of_step(one)])
    backbone = backbone_of(one, others)
    if stage.kind.reads_plain_text:
        return _plain(one, others, backbone, tables)
    return _labelled(one, others, backbone, tables)


def backbone_description(one: KnownStep, others: Mapping[str, KnownStep]) -> str:
    """Description of the backbone that a step trains, or of its first subject's; empty when unknown."""
    first = next(iter(one.parents.values()), "") if one.stage.kind.judges else ""
    return backbone_of(others.get(first, one), others).described


def _plain(
    one: KnownStep, others: Mapping[str, KnownStep], backbone: BackboneSize, tables: Mapping[str, TableSize]
) -> Work:
    stage, budget = one.stage, one.stage.budget
    text = [_table(one, name, tables) for name in one.data]
    all_of_it = sum(table.characters for table in text)
    tokens = budget.tokens
    if tokens is None:
        tokens = round((budget.epochs or 1) * all_of_it / CHARACTERS_IN_TOKEN)
    new = stage.tokenizer if "start" not in one.parents and one.checkpoint is None else None
    sample = min(getattr(new, "sample_bytes", all_of_it), all_of_it) if new else 0
    if stage.estimate is not None:
        characters = min(all_of_it, tokens * CHARACTERS_IN_TOKEN)
        passed = tokens * getattr(stage.estimate, "epochs", 0)
        return Work(tokens=tokens, characters=characters, learnt=sample, passed=passed)
    if not stage.trains:
        tokens = 0
    steps = max(1, tokens // budget.batch_tokens) if tokens else 0
    tokens, steps = one.trained or (steps * budget.batch_tokens, steps)
    rates = [float(rate) for corruption in stage.corruption if (rate := getattr(corruption, "rate", None))]
    share = (rates[0] if rates else PREDICTED) if stage.corruption else 1.0
    each, scoring = forward_operations(backbone, budget.length), share * _scoring(one, others, backbone)
    companions = 1 + COMPANION * sum(len(objective.companion_heads) for objective in stage.objective)
    streams = 2 if Ability.TWO_STREAM in backbone.offers else 1
    return Work(
        tokens=tokens,
        steps=steps,
        layers=backbone.layers,
        operations=3 * each * tokens * companions * streams,
        scoring=3 * scoring * tokens,
        characters=min(all_of_it, tokens * CHARACTERS_IN_TOKEN),
        learnt=sample,
    )


def _labelled(
    one: KnownStep, others: Mapping[str, KnownStep], backbone: BackboneSize, tables: Mapping[str, TableSize]
) -> Work:
    stage, budget = one.stage, one.stage.budget
    train, validation = (_part(one, part, tables) for part in ("train", "validation"))
    converted = sum(compression.replaces_weights for compression in stage.compression)
    if not stage.trains:
        return Work(conversions=converted)
    texts = min(train.documents, budget.labelled or train.documents)
    characters = texts * train.characters_each
    if "task_text" in one.data:  # a teacher labels them
        more = _table(one, "task_text", tables)
        texts, characters = texts + more.documents, characters + more.characters
    epochs = budget.epochs or 1
    each = min(float(budget.length), characters / max(1, texts) / CHARACTERS_IN_TOKEN)
    per_epoch = -(-texts // budget.batch_texts)
    steps = max(1, round(epochs * per_epoch))
    tokens, steps = one.trained or (round(epochs * texts * each), steps)
    validations = max(1.0, steps / max(1, per_epoch))
    forward = forward_operations(backbone, round(each))
    operations = 3 * forward * tokens + forward * validations * validation.documents * each
    if stage.teacher is not None:  # its outputs are computed once
        operations += forward * texts * each
    language_model = any(Signal.NEXT_LOGITS in objective.needs_signals for objective in stage.objective)
    return Work(
        tokens=tokens,
        steps=steps,
        layers=backbone.layers,
        operations=operations,
        scoring=3 * _scoring(one, others, backbone) * tokens if language_model else 0.0,
        characters=characters + validation.characters,
        answers=validations * validation.documents + (texts if stage.teacher else 0),
        written=validations * validation.documents * backbone.width * _writes(stage),
        conversions=converted,
    )


def _judged(one: KnownStep, others: Mapping[str, KnownStep], tables: Mapping[str, TableSize]) -> Work:
    """Work of an evaluate stage: the rows that evaluations and probes read with each model; the texts of the test table
    are read once for all of them."""
    table, suite, probes = _part(one, "test", tables), one.stage.suite, one.stage.probes
    tokens = table.characters_each / CHARACTERS_IN_TOKEN
    size = EvaluationSize(table.documents, tokens, table.answers, len(one.parents))
    passes = [one_pass for part in suite for one_pass in part.forward_passes(size)]
    if any(part.judges == "task models" for part in suite):
        passes.append(ForwardPasses(table.documents, tokens))
    if probes:
        most = max(probe.examples_read or table.documents for probe in probes)
        passes.append(ForwardPasses(min(most, table.documents), tokens))
    rows = sum(one_pass.rows for one_pass in passes)
    operations = scoring = layers = written = 0.0
    for fingerprint in one.parents.values():
        if fingerprint in others:
            subject, backbone = others[fingerprint], backbone_of(others[fingerprint], others)
            for one_pass in passes:
                length = min(float(subject.stage.budget.length), one_pass.tokens)
                operations += ANSWERING * forward_operations(backbone, round(length)) * length * one_pass.rows
                scoring += (
                    WRITING_SCORES * min(length, one_pass.scored) * one_pass.rows * _scoring(subject, others, backbone)
                )
            layers += backbone.layers / len(one.parents)
            written += rows * backbone.width * _writes(subject.stage)
    return Work(
        layers=layers,
        operations=operations,
        scoring=scoring,
        answers=rows * len(one.parents),
        written=written,
        models=len(one.parents),
        analyses=len(suite) + len(probes),
    )


def _scoring(one: KnownStep, others: Mapping[str, KnownStep], backbone: BackboneSize) -> float:
    """Operations of scoring the whole vocabulary for one token."""
    return 2 * backbone.width * (vocabulary_of(one, others) + backbone.width)


def _writes(stage: Stage) -> bool:
    return stage.head is not None and Signal.TARGET_LOGITS in stage.head.provides


def backbone_of(one: KnownStep, others: Mapping[str, KnownStep]) -> BackboneSize:
    """The backbone that a step trains, which one of its ancestors may define.

    A start's network is taken whole: the stage's own backbone says no more than what kind it is.
    """
    seen = one
    while (start := others.get(seen.parents.get("start", ""))) is not None:
        seen = start
    if seen.checkpoint is not None:
        config = json.loads((seen.checkpoint / "config.json").read_text(encoding="utf-8"))
        return BackboneSize(config, str(config.get("model_type", "")))
    if (backbone := seen.stage.backbone) is None:
        return BackboneSize({})
    return BackboneSize({**backbone.model_dump(), **getattr(backbone, "dims", {})}, backbone.label, backbone.offers)


def vocabulary_of(one: KnownStep, others: Mapping[str, KnownStep]) -> float:
    seen: KnownStep | None = one
    while seen is not None:
        if seen.stage.tokenizer is not None:
            return float(getattr(seen.stage.tokenizer, "vocab_size", USUAL_VOCABULARY))
        seen = others.get(seen.parents.get("start", ""))
    return float(USUAL_VOCABULARY)


def _part(one: KnownStep, part: str, tables: Mapping[str, TableSize]) -> TableSize:
    """The table with one part of the step's first task."""
    return _table(one, labelled_table(next(iter(tasks_in(one.data)), MAIN), part), tables)


def _table(one: KnownStep, name: str, tables: Mapping[str, TableSize]) -> TableSize:
    source = one.data.get(name)
    return tables.get(source.digest if source else "", tables.get(name, TableSize(0, 0)))
