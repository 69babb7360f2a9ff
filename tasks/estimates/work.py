"""What a step computes, counted before it runs: operations, optimizer steps, text that is read, texts that are answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.lineage.provenance import DataSource, Provenance
from pipelines.recipe.plan import Step
from pipelines.recipe.schema import Stage
from pipelines.vocabulary import Ability, Signal

if TYPE_CHECKING:
    from tasks.datasets.prepared import Prepared

WIDTHS = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers")
DECODER_LAYERS = ("num_decoder_layers",)
"""What architectures call their hidden size and their numbers of layers."""
USUAL_VOCABULARY = 30_522
CHARACTERS_IN_TOKEN = 4.0
PREDICTED = 0.15
"""Share of the tokens that a corruption leaves to be predicted, where it does not say."""
RELATIVE = 2
"""Times the operations of attention that no kernel computes at once, since positions are relative."""
ANSWERING = 2.0
"""Times the operations of a body that only answers: in float32, and without the kernels that a training step has."""
WRITING_SCORES = 4.0
"""Times the operations of scoring the vocabulary for who only answers: all scores are written down, in float32."""
COMPANION = 0.4
"""What a network that is trained beside another adds to the work, as a share of it."""


@dataclass(frozen=True)
class Table:
    """A table of text or of examples."""

    documents: int
    characters: int
    answers: int = 1
    """That its task has to choose from."""

    @property
    def characters_each(self) -> float:
        """On average."""
        return self.characters / max(1, self.documents)


def tables_of(prepared: Prepared) -> dict[str, Table]:
    """The tables of a dataset, by name and by digest."""
    told, answers = prepared.summary["tables"], max(1, len(prepared.summary.get("labels", ())))
    by_name = {
        name: Table(told[name]["documents"], told[name]["characters"], answers)
        for name in prepared.tables
        if name in told
    }
    return by_name | {prepared.digests[name]: table for name, table in by_name.items()}


@dataclass(frozen=True)
class Known:
    """A step that is planned, or one that was computed and has left a record."""

    recipe: str
    name: str
    stage: Stage
    parents: Mapping[str, str]
    data: Mapping[str, DataSource]
    checkpoint: Path | None = None
    trained: tuple[int, int] | None = None
    """Tokens and optimizer steps, where they are known because they are done. A stage that may have stopped early is taken to
    have done what it could have: that it stops is part of what is learnt of it."""

    @classmethod
    def planned(cls, step: Step) -> Known:
        return cls(step.recipe, step.name, step.stage, step.parents, step.data, step.checkpoint)

    @classmethod
    def recorded(cls, record: Provenance) -> Known:
        """Raises ValueError where the recipes of this version would not say it so."""
        stage = Stage.model_validate(record.identity["stage"])
        done = (int(record.result.get("tokens", 0)), int(record.result.get("steps", 0)))
        trained = done if stage.budget.patience is None else None
        return cls(record.recipe, record.stage, stage, record.parents, record.data, None, trained)


@dataclass(frozen=True)
class Work:
    """What takes time."""

    tokens: int = 0
    """That are trained on."""
    steps: int = 0
    """Of the optimizer."""
    layers: float = 0.0
    operations: float = 0.0
    """Floating-point operations of the body: forward, and twice that backward where something is trained."""
    scoring: float = 0.0
    """Those of scoring the vocabulary."""
    characters: float = 0.0
    """That are read and made tokens."""
    learnt: float = 0.0
    """Characters that a new tokenizer is made of."""
    answers: float = 0.0
    """Texts that a model answers without being trained on them."""
    written: float = 0.0
    """Those of them that are written token by token, times the width of the body."""
    models: int = 0
    """That are looked at."""
    conversions: int = 0
    """To another runtime."""
    analyses: int = 0
    """Evaluations and probes."""


def work_of(one: Known, others: Mapping[str, Known], tables: Mapping[str, Table]) -> Work:
    """Counted roughly. `others` are steps by fingerprint, `one`'s ancestors among them; `tables` those of the dataset, by digest
    and by name: a record of other data is taken to have had as many examples."""
    stage = one.stage
    if stage.kind.judges:
        return _judged(one, others, tables)
    body = _body(one, others)
    if stage.kind.reads_plain_text:
        return _plain(one, others, body, tables)
    return _labelled(one, others, body, tables)


def body_described(one: Known, others: Mapping[str, Known]) -> str:
    """The kind of body that it trains, or that the first of those has that it looks at; empty where nothing is known of it."""
    first = next(iter(one.parents.values()), "") if one.stage.kind.judges else ""
    return _body(others.get(first, one), others).described


def _plain(one: Known, others: Mapping[str, Known], body: _Body, tables: Mapping[str, Table]) -> Work:
    stage, budget = one.stage, one.stage.budget
    text = [_table(one, name, tables) for name in one.data]
    all_of_it = sum(table.characters for table in text)
    tokens = budget.tokens
    if tokens is None:
        tokens = round((budget.epochs or 1) * all_of_it / CHARACTERS_IN_TOKEN)
    if not stage.trains:
        tokens = 0
    steps = max(1, tokens // budget.batch_tokens) if tokens else 0
    tokens, steps = one.trained or (steps * budget.batch_tokens, steps)
    new = stage.tokenizer if "start" not in one.parents and one.checkpoint is None else None
    sample = min(getattr(new, "sample_bytes", all_of_it), all_of_it) if new else 0
    rates = [float(rate) for corruption in stage.corruption if (rate := getattr(corruption, "rate", None))]
    share = (rates[0] if rates else PREDICTED) if stage.corruption else 1.0
    each, scoring = _forward(body, budget.length), share * _scoring(one, others, body)
    beside = 1 + COMPANION * sum(len(objective.companion_heads) for objective in stage.objective)
    streams = 2 if Ability.TWO_STREAM in body.offers else 1
    return Work(
        tokens=tokens,
        steps=steps,
        layers=body.layers,
        operations=3 * each * tokens * beside * streams,
        scoring=3 * scoring * tokens,
        characters=min(all_of_it, tokens * CHARACTERS_IN_TOKEN),
        learnt=sample,
    )


def _labelled(one: Known, others: Mapping[str, Known], body: _Body, tables: Mapping[str, Table]) -> Work:
    stage, budget = one.stage, one.stage.budget
    train, validation = _table(one, "train", tables), _table(one, "validation", tables)
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
    forward = _forward(body, round(each))
    operations = 3 * forward * tokens + forward * validations * validation.documents * each
    if stage.teacher is not None:  # which is asked once
        operations += forward * texts * each
    beside = any(Signal.NEXT_LOGITS in objective.needs_signals for objective in stage.objective)
    return Work(
        tokens=tokens,
        steps=steps,
        layers=body.layers,
        operations=operations,
        scoring=3 * _scoring(one, others, body) * tokens if beside else 0.0,
        characters=characters + validation.characters,
        answers=validations * validation.documents + (texts if stage.teacher else 0),
        written=validations * validation.documents * body.width * _writes(stage),
        conversions=converted,
    )


def _judged(one: Known, others: Mapping[str, Known], tables: Mapping[str, Table]) -> Work:
    """Rows of all that evaluations and probes show to each model; the test table's own texts are shown once for all of them."""
    table, suite, probes = _table(one, "test", tables), one.stage.suite, one.stage.probes
    tokens = table.characters_each / CHARACTERS_IN_TOKEN
    asked = EvaluationSize(table.documents, tokens, table.answers, len(one.parents))
    shown = [reading for part in suite for reading in part.readings(asked)]
    if any(part.judges == "task models" for part in suite):
        shown.append(ForwardPasses(table.documents, tokens))
    if probes:
        most = max(probe.examples_read or table.documents for probe in probes)
        shown.append(ForwardPasses(min(most, table.documents), tokens))
    rows = sum(reading.rows for reading in shown)
    operations = scoring = layers = written = 0.0
    for fingerprint in one.parents.values():
        if fingerprint in others:
            subject, body = others[fingerprint], _body(others[fingerprint], others)
            for reading in shown:
                length = min(float(subject.stage.budget.length), reading.tokens)
                operations += ANSWERING * _forward(body, round(length)) * length * reading.rows
                scoring += WRITING_SCORES * min(length, reading.scored) * reading.rows * _scoring(subject, others, body)
            layers += body.layers / len(one.parents)
            written += rows * body.width * _writes(subject.stage)
    return Work(
        layers=layers,
        operations=operations,
        scoring=scoring,
        answers=rows * len(one.parents),
        written=written,
        models=len(one.parents),
        analyses=len(suite) + len(probes),
    )


def _forward(body: _Body, length: int) -> float:
    """Operations of one token going forward through a body: 12 h² weights a layer and the products of attention; of a recurrent
    layer, 8 h² weights."""
    width = body.width
    if Ability.RECURRENT in body.offers:
        return body.layers * 16 * width**2
    return body.layers * (24 * width**2 + 4 * length * width) * (RELATIVE if Ability.TWO_STREAM in body.offers else 1)


def _scoring(one: Known, others: Mapping[str, Known], body: _Body) -> float:
    """Operations of one token's scores of the whole vocabulary."""
    return 2 * body.width * (_vocabulary(one, others) + body.width)


def _writes(stage: Stage) -> bool:
    return stage.head is not None and Signal.TARGET_LOGITS in stage.head.provides


@dataclass(frozen=True)
class _Body:
    """What is said of a body before it is there."""

    dims: Mapping[str, Any]
    described: str = ""
    offers: frozenset[Ability] = frozenset()

    @property
    def width(self) -> float:
        return _first(self.dims, WIDTHS, 768.0)

    @property
    def layers(self) -> float:
        # a table of vectors says its width and no layers
        usual = 0.0 if "hidden_size" in self.dims else 12.0
        return _first(self.dims, LAYERS, usual) + _first(self.dims, DECODER_LAYERS, 0.0)


def _body(one: Known, others: Mapping[str, Known]) -> _Body:
    """The body that a step trains, which one of its ancestors may have said."""
    seen: Known | None = one
    while seen is not None:
        if seen.checkpoint is not None:
            told = json.loads((seen.checkpoint / "config.json").read_text(encoding="utf-8"))
            return _Body(told, str(told.get("model_type", "")))
        if (body := seen.stage.backbone) is not None:
            return _Body({**body.model_dump(), **getattr(body, "dims", {})}, body.described, body.offers)
        seen = others.get(seen.parents.get("start", ""))
    return _Body({})


def _vocabulary(one: Known, others: Mapping[str, Known]) -> float:
    seen: Known | None = one
    while seen is not None:
        if seen.stage.tokenizer is not None:
            return float(getattr(seen.stage.tokenizer, "vocab_size", USUAL_VOCABULARY))
        seen = others.get(seen.parents.get("start", ""))
    return float(USUAL_VOCABULARY)


def _table(one: Known, name: str, tables: Mapping[str, Table]) -> Table:
    source = one.data.get(name)
    return tables.get(source.digest if source else "", tables.get(name, Table(0, 0)))


def _first(dims: Mapping[str, Any], names: tuple[str, ...], otherwise: float) -> float:
    return next((float(dims[name]) for name in names if dims.get(name)), otherwise)
