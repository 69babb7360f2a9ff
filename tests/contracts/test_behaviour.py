"""What the members of each family guarantee when they run.

Tokenizers, segmentations, layouts, corruptions, strategies and schedules have their contracts in their own test
folders; heads, and parts in a training step, have files of their own here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as parquet
import pytest
import torch
from transformers import AutoModel, PreTrainedTokenizerFast

from pipelines.components import Component, discover
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.stage import EVALUATION, evaluate
from pipelines.judging.subjects import Subject
from pipelines.networks import register
from pipelines.parts.backbones import Backbone
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.compressions import Compression, Level
from pipelines.task_families import TaskFamily
from tests.contracts.families import build, members
from tests.contracts.trials import job_for, stages, tables, tried, where_used

KEPT_ELSEWHERE = {
    "tokenizers": "tests/pipelines/parts/tokenizers/test_tokenizers.py",
    "segmentations": "tests/pipelines/parts/segmentations/test_segmentations.py",
    "layouts": "tests/pipelines/parts/layouts/test_layouts.py",
    "corruptions": "tests/contracts/test_corruptions.py",
    "strategies": "tests/pipelines/parts/strategies/test_contract.py",
    "schedules": "tests/pipelines/parts/schedules/test_schedules.py",
    "heads": "tests/contracts/test_heads.py",
    "objectives": "tests/contracts/test_stages.py",
}
"""Package of a family → the test that is run for every member of it."""
discover("pipelines.parts.backbones")
BODIES = [body for member in Backbone.members.values() for body in cast("type[Backbone]", member).variants()]


@pytest.mark.parametrize("package", KEPT_ELSEWHERE)
def test_every_family_has_a_contract_over_all_its_members(package: str) -> None:
    root = Path(__file__).parents[2]
    text = (root / KEPT_ELSEWHERE[package]).read_text(encoding="utf-8")
    assert f'members("{package}")' in text or f'discover("pipelines.parts.{package}")' in text


@pytest.mark.parametrize("name", members("task_families"))
def test_a_task_family_scores_right_answers_best_and_wrong_ones_worse(name: str) -> None:
    family = TaskFamily.model_validate(name)
    rows = parquet.read_table(tables(name)["train"]).to_pylist()
    assert set(family.columns) <= set(rows[0]) and set(family.target) <= set(family.columns)
    assert [family.problem(row) for row in rows] == [None] * len(rows)
    labels = family.labels(rows)
    assert labels == family.labels(rows[::-1]), "the order of labels hangs on that of the rows"
    gold = [family.gold(row) for row in rows]
    # what is right, written as text and read again
    right = [family.read_answer(family.answer_text(row), row, labels) for row in rows]
    statistics = family.statistics(gold, right, labels)
    assert statistics.shape[0] == len(rows) and statistics.dtype == np.float64
    scores, first = family.scores(statistics), family.metrics[0]
    assert tuple(scores) == family.metrics and family.scores(statistics[::-1])[first] == pytest.approx(scores[first])
    # numbers are rounded when they are written
    assert scores[first] == pytest.approx(1, abs=1e-9) or all(isinstance(answer, float) for answer in right)
    # answers of other rows, and text that answers nothing
    for wrong in (right[1:] + right[:1], [family.read_answer("§", row, labels) for row in rows]):
        worse = family.scores(family.statistics(gold, wrong, labels))
        assert all(-1 <= value <= 1 for value in worse.values()) and worse[first] < scores[first]
    for row in rows[:5]:
        assert family.repair_texts(row, lambda text: text) == {key: row[key] for key in family.columns}
        assert family.text(row) and family.source(row, labels)


@pytest.mark.parametrize("part", BODIES, ids=lambda part: part.label)
@torch.no_grad()
def test_a_body_is_built_for_its_tokenizer_saved_opened_and_recognised(
    part: Backbone, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    register()
    tiny = part.tiny()
    config = tiny.config(tokenizer, 32)
    assert config.vocab_size >= len(tokenizer) and config.pad_token_id == tokenizer.pad_token_id
    torch.manual_seed(0)
    body = AutoModel.from_config(config).eval()
    body.save_pretrained(tmp_path)
    opened, unmatched = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(unmatched[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert all(torch.equal(value, opened.state_dict()[key]) for key, value in body.state_dict().items())
    found = recognised(tmp_path)
    assert found.label == part.label
    assert (found.offers, found.max_length) == (part.offers, part.max_length)


def recognised(folder: Path) -> Backbone:
    """What the one member that knows it takes the configuration in `folder` for."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    found = [cast("type[Backbone]", member).recognise(config) for member in Backbone.members.values()]
    (one,) = [body for body in found if body is not None]
    return one


@pytest.mark.parametrize("name", members("compressions"))
def test_a_compression_either_shrinks_a_network_or_converts_it(name: str) -> None:
    part = build(members("compressions")[name])
    assert isinstance(part, Compression)
    own: type[Component] = type(part)
    assert (own.convert is not Compression.convert) == part.replaces_weights  # type: ignore[attr-defined]
    chooses = own.choose is not Compression.choose  # type: ignore[attr-defined]
    assert (own.rebuild is not Compression.rebuild) == chooses  # type: ignore[attr-defined]
    assert (chooses or own.shrink is not Compression.shrink) != part.replaces_weights  # type: ignore[attr-defined]
    # what training could undo is kept, and then only what leaves the shapes as they are
    keeps = own.constraint is not Compression.constraint  # type: ignore[attr-defined]
    assert (part.level is Level.WEIGHTS or not keeps) and (keeps or not part.complete_after)


@pytest.mark.parametrize(
    "name", [name for name, one in members("compressions").items() if getattr(one, "level", None) is Level.WEIGHTS]
)
def test_single_weights_are_kept_by_a_constraint_or_by_modules_that_compute_with_them(
    name: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    part = build(members("compressions")[name])
    assert isinstance(part, Compression)
    network = AutoModel.from_config(Transformer(architecture="bert").tiny().config(tokenizer, 16))
    before = {name: type(module) for name, module in network.named_modules()}
    shapes = {name: value.shape for name, value in network.state_dict().items()}
    result, change = part.shrink(network)
    assert {name: value.shape for name, value in result.state_dict().items()} == shapes, "no module changes its shape"
    changed = [name for name, module in result.named_modules() if type(module) is not before[name]]
    assert (part.constraint(result, change) is None) == bool(changed) and set(changed) <= set(change)


@pytest.mark.parametrize("name", [name for name in members("evaluations") if ("evaluations", name) in where_used()])
def test_an_evaluation_writes_numbers_that_json_can_hold(name: str) -> None:
    where = where_used()["evaluations", name]
    recipe, stage = where.partition("/")[0], stages()[where]
    suite = tuple(one for one in stage.suite if one.name == name)
    assert isinstance(suite[0], Evaluation)
    subjects, one = list[Subject](), ""
    for subject in (stage.start,) if isinstance(stage.start, str) else cast("tuple[str, ...]", stage.start):
        judged = f"{recipe}/{subject}" if "/" not in subject else subject
        answers = not stages()[judged].kind.reads_plain_text
        # the first that answers stands for all
        one = one or judged if answers else one
        folder = tried(one if answers else judged).folder
        subjects.append(
            Subject(stage=subject, seed=0, fingerprint=f"{len(subjects):0<64}", folder=folder, answers=answers)
        )
    job = job_for(stage.model_copy(update={"suite": suite}), where, answering=stages()[one] if one else None)
    job = job.model_copy(update={"subjects": tuple(subjects)})
    result = evaluate(job)
    assert all(np.isfinite(value) for value in result.metrics.values())
    record = json.loads((job.out / EVALUATION).read_text(encoding="utf-8"), parse_constant=refuse)["sections"][name]
    assert record and isinstance(record, dict)


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")
