"""Speed of other pre-training objectives, compared with transformers' Trainer, or with a plain loop if it has no
collator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.harness.benchmark import Benchmark, Setting, missing
from benchmarks.harness.best import AT_ITS_BEST, TRAINER_WAYS, against_best, in_our_environment, way
from benchmarks.harness.paced import Loop, Paces, as_it_comes, pace
from benchmarks.harness.record import Figure, Goal, Measured
from benchmarks.harness.stages import Stages, tables
from benchmarks.harness.turns import Turns, rate, ratio
from pipelines.models.opening import open_tokenizer
from pipelines.vocabulary import Field

STEP_TOKENS, LENGTH, STEPS = 4096, 128, 4000
ROWS = STEP_TOKENS // LENGTH
OURS, TRAINER, PLAIN = "cursus", "HF Trainer", "a plain loop"
BERT_DIMS = "hidden_size: 256, num_hidden_layers: 4, num_attention_heads: 4, intermediate_size: 1024"
RECIPE = """\
name: {name}
paper: arXiv:2003.10555
stages:
  initial:
    kind: pretrain
    corpus: general
    tokenizer: {{name: {tokenizer}, vocab_size: {vocabulary}}}
    layout: {{name: windows, framed: {framed}}}
    backbone: {{name: transformer, architecture: {architecture}, {positions}dims: {{{dims}}}}}
    corruption: [{corruption}]
    head: {head}
    objective: {objective}
    strategy: full
    optimizer: {{lr: 5.0e-4, weight_decay: 0.01}}
    budget: {{tokens: 0, batch_tokens: {step_tokens}, length: {length}}}
  train:
    kind: adapt_domain
    start: initial
    corpus: general
    budget: {{tokens: {tokens}, batch_tokens: {step_tokens}, length: {length}}}
"""


@dataclass(frozen=True)
class System:
    """An objective at mini size (four layers of 256), and the implementation that it is compared with."""

    label: str
    parts: dict[str, str]
    """Parts of the recipe."""
    peer: str = TRAINER
    module: str = "benchmarks.peers.trainer"
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of the peer, in addition to the model, the text and the sizes."""
    ways: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: TRAINER_WAYS)
    """The ways in which the peer is at its best: settings in addition to those."""


SYSTEMS = {
    "electra": System(
        "ELECTRA",
        {
            "tokenizer": "wordpiece", "framed": "true", "architecture": "electra", "positions": "positions: 512, ",
            "dims": f"embedding_size: 128, {BERT_DIMS}",
            "corruption": "{name: token_mask, rate: 0.15, mask: 1.0, random: 0.0}", "head": "replaced_tokens",
            "objective": "{name: replaced_token_detection, generator_size: 0.25, discriminator: 50}",
        },
        peer=PLAIN,
        module="benchmarks.peers.electra",
        settings={"generator_size": 0.25, "discriminator": 50.0, "rate": 0.15},
        ways={"SDPA": {}, "compiled, SDPA": {"compiled": True}},
    ),
    "xlnet": System(
        "XLNet",
        {
            "tokenizer": "xlnet_unigram", "framed": "true", "architecture": "xlnet", "positions": "",
            "dims": "d_model: 256, n_layer: 4, n_head: 4, d_inner: 1024",
            "corruption": "{name: permutation, context: 6, longest: 5}", "head": "permuted_lm",
            "objective": "permuted_lm",
        },
        settings={"task": "permuted"},
        # its attention is of its own
        ways={"plain": {}, "compiled": {"arguments": {"torch_compile": True}}},
    ),
    "t5": System(
        "T5",
        {
            "tokenizer": "unigram", "framed": "true", "architecture": "t5", "positions": "",
            "dims": "d_model: 256, d_kv: 64, d_ff: 1024, num_layers: 4, num_decoder_layers: 4, num_heads: 4",
            "corruption": "{name: sentinel_spans, density: 0.15, mean_length: 3}", "head": "sequence_to_sequence",
            "objective": "sequence_to_sequence",
        },
        settings={"task": "spans"},
    ),
    "causal": System(
        "causal LM",
        {
            "tokenizer": "gpt_bpe", "framed": "false", "architecture": "gpt2", "positions": "positions: 512, ",
            "dims": "n_embd: 256, n_layer: 4, n_head: 4", "corruption": "", "head": "causal_lm",
            "objective": "causal_lm",
        },
        settings={"task": "causal"},
    ),
}  # fmt: skip


def title(system: System) -> str:
    """The name of a system's ratio."""
    return f"{system.label}: against {system.peer}"


class OtherObjectives(Benchmark):
    """For T5, whose collator exists in transformers only for Flax, the Trainer reads rows that are already
    corrupted."""

    name = "other_objectives"
    what = (
        "Tokens per second of ELECTRA, XLNet, T5 and causal-LM pre-training, four layers of 256, rows of 128 tokens, "
        "4,096 tokens per step, each architecture's default dropout, bfloat16: a stage as a launcher trains it, "
        "compared with transformers' Trainer, or, for ELECTRA, which the Trainer does not support, with a plain loop "
        "over transformers' networks and collator: as it comes, and at its best, in the environment that a launcher "
        "sets, compiled or not, whichever is fastest."
    )
    slow = True
    goals: ClassVar[tuple[Goal, ...]] = tuple(
        goal
        for system in SYSTEMS.values()
        for goal in (
            Goal(figure=title(system), at_least=3),
            Goal(figure=f"{title(system)} {AT_ITS_BEST}", at_least=2),
        )
    )

    def unavailable(self) -> str | None:
        return missing("accelerate", "datasets")

    def measure(self, setting: Setting) -> Measured:
        text = tables(setting)
        figures: list[Figure] = []
        turns: Turns = {}
        notes: list[str] = []
        for name, system in SYSTEMS.items():
            paces = _taken(setting, name, system, text)
            by_variant = paces.turns
            turns |= {f"{system.label}: {one}": taken for one, taken in by_variant.items()}
            notes += paces.notes(f"{system.label}: ")
            if OURS in by_variant and system.peer in by_variant:
                figures.append(ratio(title(system), by_variant[OURS], by_variant[system.peer], system.peer))
            if OURS in by_variant:
                figures += against_best(f"{system.label}: ", by_variant[OURS], by_variant, system.peer, system.ways)
            figures += [rate(f"{system.label}: {one}", taken, "tokens/s") for one, taken in by_variant.items()]
        return Measured(figures=tuple(figures), turns=turns, notes=tuple(notes))


def _taken(setting: Setting, name: str, system: System, text: dict[str, Path]) -> Paces:
    from pipelines.training.loop.inputs import batches_of

    recipe = RECIPE.format(
        name=name, vocabulary=2048 if setting.quick else 30522, step_tokens=STEP_TOKENS, length=LENGTH,
        tokens=STEPS * STEP_TOKENS, **system.parts,
    )  # fmt: skip
    stages = Stages(setting, name, recipe, text)
    initial = stages.make("initial")
    ours, job = stages.loop("train", STEP_TOKENS)
    settings: dict[str, Any] = {
        "model": str(initial), "table": str(text["general"]), "length": LENGTH,
        "steps": STEPS, "warmup": STEPS // 10, "lr": 5e-4, "seed": 0, "rows_a_step": ROWS, "threads": setting.threads,
        **system.settings,
    }  # fmt: skip
    if settings.get("task") == "spans":
        (batches,) = batches_of(job, {"": None}, open_tokenizer(initial)).lines
        made = [batches.batch(step) for step in range(4 if setting.quick else 64)]  # type: ignore[union-attr]
        rows = {
            key: [row for one in made for row in one[name].tolist()]
            for key, name in (("input_ids", Field.INPUT_IDS), ("labels", Field.TARGET_IDS))
        }
        settings["rows"] = str(stages.folder / "rows.json")
        Path(settings["rows"]).write_text(json.dumps(rows), encoding="utf-8")
    loops = {OURS: ours, system.peer: _peer(system, settings, "as_it_comes", stages.folder, as_it_comes(setting))}
    if setting.quick:
        return pace(loops, stages.folder, rounds=2, seconds=1, warm=1)
    for number, (one, added) in enumerate(system.ways.items()):
        loops[way(system.peer, one)] = _peer(
            system, {**settings, **added}, f"way{number}", stages.folder, in_our_environment(setting)
        )
    return pace(loops, stages.folder, rounds=5, seconds=5, steps=2)


def _peer(system: System, settings: dict[str, Any], name: str, folder: Path, environment: Mapping[str, str]) -> Loop:
    """The peer with these settings; what it writes is in folders and files of this name."""
    own = {"cache": str(folder / f"{name}_cache"), "curve": str(folder / f"{name}_curve.jsonl")}
    order = folder / f"{name}.json"
    order.write_text(json.dumps(settings | own), encoding="utf-8")
    return Loop(system.module, order, STEP_TOKENS, environment)
