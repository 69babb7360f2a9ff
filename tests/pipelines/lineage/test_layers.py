"""Identity in layers: what no trained model's fingerprint depends on, and what exactly those that use it depend on.

A copy of the code is edited, one file after the other, and every shipped recipe is planned anew by a process that reads
the copy. Nothing is trained.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pipelines.lineage.source import closure
from tests.copied_sources import copy_code
from tests.named_tables import named_tables
from tests.steps import ROOT

TRAINING = """
components components.declared corpora corpora.engines corpora.engines.work corpora.shards corpora.shards.folders
corpora.shards.tables corpora.shards.tally corpora.shards.writing errors lineage lineage.disk lineage.fingerprint
lineage.results lineage.source lineage.weights models models.classifier models.features models.opening
models.text_states models.reading models.weights networks networks.channel_embeddings networks.document_attention
networks.folder networks.masked_softmax networks.operation networks.several_heads parts parts.accelerators
parts.annotations parts.architectures parts.attention parts.backbones parts.compressions parts.corruptions
parts.distributions parts.embeddings parts.heads parts.knowledge parts.layouts parts.mixing parts.objectives
parts.optimizers parts.segmentations parts.strategies parts.tokenizers recipe recipe.kinds recipe.lines
recipe.model_annotations recipe.starts recipe.strict task_families task_families.labelled_tables
task_families.tokenized task_families.writing_systems training training.assembly training.assembly.annotation_models
training.assembly.answer_cache training.assembly.assemble training.assembly.companions training.assembly.export
training.assembly.feature_cache training.assembly.features training.assembly.fertility training.assembly.finished
training.assembly.head_weights training.assembly.new_words training.assembly.objective_modules
training.assembly.optimizer training.assembly.own_tokens training.assembly.parameter_groups
training.assembly.shared_tokens training.assembly.teacher_vocabulary training.batches
training.batches.augmented_examples training.batches.corruption_shards training.batches.encoded_documents
training.batches.special_tokens training.batches.encoded_shards training.batches.examples training.batches.few_labels
training.batches.micro_batches training.batches.packed_rows training.batches.plain_text training.batches.reading_texts
training.batches.stage_batches training.batches.token_channels training.batches.token_shards
training.batches.token_stream training.batches.word_cache training.checkpoints training.checkpoints.best_weights
training.checkpoints.folder training.checkpoints.local_files training.loop training.loop.calibration
training.loop.clipping training.loop.constraints training.loop.fit training.loop.inputs training.loop.module
training.loop.no_op_profiler training.loop.resume training.loop.seeding training.loop.stopping
training.loop.trained_line training.loop.validation training.metrics_log training.ranks training.ranks.process_group
vocabulary words task_families.columns task_families.excerpt models.answering training.activity
training.batches.digesting_file training.batches.stored_examples training.loop.whole_scores
corpora.shards.example_table networks.shape
"""
"""The modules that compute every training stage: a change of any of them computes every model anew."""

Edit: TypeAlias = tuple[str, str, str]
"""File below the checkout, the text to replace (empty: append), and what replaces it."""

Plans: TypeAlias = tuple[dict[str, dict[str, object]], dict[str, dict[str, str]]]
"""Step → what is known of it, and edit → step → fingerprint."""

CONSTANT = "\nMOVED = 1\n"
EVALUATION = "an evaluation"
NOTHING_TRAINED: dict[str, Edit] = {
    EVALUATION: ("pipelines/judging/evaluations/calibration.py", "", CONSTANT),
    "the statistics behind intervals": ("pipelines/judging/certainty/variance_components.py", "", CONSTANT),
    "a report template": ("pipelines/reports/elements/report.html", "", "<p>moved</p>"),
    "a page of the report": ("pipelines/reports/report.py", "", CONSTANT),
    "a redaction rule": ("pipelines/safety/redaction.py", "", CONSTANT),
    "a probe": ("pipelines/judging/probes/edge.py", "", CONSTANT),
    "a gate's criterion": ("pipelines/judging/gate/quality.py", "", CONSTANT),
    "a serving runtime": ("pipelines/serving/runtimes/torch_bf16.py", "", CONSTANT),
    "how a plan is checked": ("pipelines/recipe/check.py", "", CONSTANT),
    "tracking": ("tasks/tracking/journal.py", "", CONSTANT),
    "a comment in a kernel": ("pipelines/parts/accelerators/cpu_kernels/adamw.c", "", "\n/* a remark */\n"),
    "a blank line in a kernel": ("pipelines/parts/accelerators/cpu_kernels/attention.c", "\n", "\n\n"),
    "a constant in a kernel's module": ("pipelines/parts/accelerators/cpu_kernels/library.py", "", CONSTANT),
}
KERNELS = "pipelines/parts/accelerators/cpu_kernels"
if not (ROOT / KERNELS).is_dir():  # deleted, as whoever needs no accelerator may
    NOTHING_TRAINED = {name: edit for name, edit in NOTHING_TRAINED.items() if not edit[0].startswith(KERNELS)}
"""An accelerator may be deleted, and its edits with it."""
ONLY_ITS_USERS: dict[str, tuple[Edit, str]] = {
    "a default of an objective": (
        ("pipelines/parts/objectives/match_logits.py", "Option(2.0,", "Option(3.0,"),
        "pipelines.parts.objectives.match_logits",
    ),
    "a corruption's arithmetic": (
        ("pipelines/parts/corruptions/span_mask.py", "np.cumsum(starts) - 1", "np.cumsum(starts) - 2"),
        "pipelines.parts.corruptions.span_mask",
    ),
    "a schedule": (
        ("pipelines/parts/schedules/slanted_triangular.py", "", CONSTANT),
        "pipelines.parts.schedules.slanted_triangular",
    ),
}
PLANS = """
import json, sys
from pathlib import Path
from pipelines.components import Component
from pipelines.lineage import source
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
from pipelines.recipe.stage_parts import code_of
from pipelines.task_families import TaskFamily

library = Library(Path("recipes"))
tables, named = json.loads(sys.argv[1])
families = {name: TaskFamily.model_validate(family) for name, family in named.items()}
data = {name: DataSource(digest=name, path=name) for name in tables}
recipes = [library.load(name) for name in library.names()]  # once: an edit of the code changes none of them

def modules(value):
    if isinstance(value, Component):
        yield type(value).__module__
    fields = type(value).model_fields if hasattr(type(value), "model_fields") else ()
    several = value.values() if isinstance(value, dict) else value  # lines are by their names
    for one in several if isinstance(value, (dict, tuple, list)) else [getattr(value, name) for name in fields]:
        yield from modules(one)

def plans():
    for cached in (source._read, source.closure, code_of):
        cached.cache_clear()
    return {
        f"{recipe.name}/{step.label}": {
            "fingerprint": step.fingerprint,
            "trains": step.stage.trains,
            "parents": sorted(step.parents.values()),
            "modules": sorted(set(modules(step.stage))) if step.stage.trains else [],
        }
        for recipe in recipes
        for step in plan(recipe, library, data, families=families).steps
    }

print(json.dumps(plans()), flush=True)
for line in sys.stdin:
    before = {}
    for file, old, new in json.loads(line):
        path = Path(file)
        text = path.read_text(encoding="utf-8")
        if old not in text:
            sys.exit(f"{file} does not hold {old!r}")
        before.setdefault(path, text)
        path.write_text(text.replace(old, new, 1) if old else text + new, encoding="utf-8")
    print(json.dumps({name: step["fingerprint"] for name, step in plans().items()}), flush=True)
    for path, text in before.items():
        path.write_text(text, encoding="utf-8")
"""


def test_the_closure_of_the_training_loop_is_a_list() -> None:
    expected = {"pipelines", *(f"pipelines.{name}" for name in TRAINING.split())}
    found = closure("pipelines.training.loop.fit")
    joined, left = sorted(found - expected), sorted(expected - found)
    assert not joined, (
        f"{joined}: every trained model now depends on these modules, and is computed anew when one changes. Import "
        "them where they do not belong to training, or, if they really decide what is trained, add them to TRAINING"
    )
    assert not left, f"{left}: no longer part of the training loop; take them from TRAINING"


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Plans:
    """The plans of all recipes, and the fingerprints after each edit.

    Each planning of all recipes takes seconds, so those edits that must move nothing are made together: where they
    move nothing, none of them does. Where they do, each is made alone, to tell which it was.
    """
    copy = tmp_path_factory.mktemp("layers")
    for room in ("pipelines", "tasks", "recipes"):
        copy_code(ROOT / room, copy / room)
    together = {name: edit for name, edit in NOTHING_TRAINED.items() if name != EVALUATION}
    alone = {name: edit for name, edit in NOTHING_TRAINED.items() if name == EVALUATION}
    alone |= {name: edit for name, (edit, _) in ONLY_ITS_USERS.items()}
    before, joint, *each = _planned(copy, [[*together.values()], *([edit] for edit in alone.values())])
    after = dict(zip(alone, each, strict=True))
    if any(step["trains"] and step["fingerprint"] != joint[name] for name, step in before.items()):
        _, *each = _planned(copy, [[edit] for edit in together.values()])
        return before, after | dict(zip(together, each, strict=True))
    return before, after | dict.fromkeys(together, joint)


def _planned(copy: Path, rounds: list[list[Edit]]) -> list[Any]:
    """The plans of the code in `copy`, and the fingerprints with the edits of each round."""
    done = subprocess.run(
        [sys.executable, "-c", PLANS, json.dumps(named_tables())],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        input="".join(json.dumps(edits) + "\n" for edits in rounds),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def moved(plans: Plans, edit: str) -> set[str]:
    """The trained steps whose fingerprint an edit moves."""
    before, after = plans
    return {name for name, step in before.items() if step["trains"] and step["fingerprint"] != after[edit][name]}


@pytest.mark.parametrize("edit", NOTHING_TRAINED)
def test_no_trained_model_depends_on(edit: str, plans: Plans) -> None:
    assert not moved(plans, edit)


@pytest.mark.parametrize("edit", ONLY_ITS_USERS)
def test_just_its_users_and_their_descendants_depend_on(edit: str, plans: Plans) -> None:
    before, _ = plans
    module = ONLY_ITS_USERS[edit][1]
    users = {str(step["fingerprint"]) for step in before.values() if module in step["modules"]}
    assert users, "some recipe uses it"
    while (
        descendants := {
            str(step["fingerprint"])
            for step in before.values()
            if users & set(step["parents"])  # type: ignore[call-overload]
        }
        - users
    ):
        users |= descendants
    expected = {name for name, step in before.items() if step["trains"] and step["fingerprint"] in users}
    assert moved(plans, edit) == expected and len(expected) < len(before)


def test_a_changed_evaluation_is_measured_anew(plans: Plans) -> None:
    before, after = plans
    reports = {name for name, step in before.items() if not step["trains"]}
    changed = {name for name in reports if before[name]["fingerprint"] != after[EVALUATION][name]}
    assert changed, "a report that measures calibration is computed anew"
