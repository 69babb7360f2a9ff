"""Embeddings of channels are trained, saved with the network, opened by one call, inherited, and ignored by
transformers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.errors import DataError, RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.models.opening import ModelRecord, open_config, open_model
from pipelines.models.text_network import output_kind
from pipelines.parts.embeddings.languages import LanguageEmbedding
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.plan import Plan, plan
from pipelines.recipe.schema import Stage
from pipelines.serving.answering.answerer import Answerer
from pipelines.task_families import TaskFamily
from pipelines.task_families.writing_systems import join_words
from pipelines.training.ranks.run import run
from pipelines.vocabulary import Field, Signal
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of
from tests.small_corpus import documents
from tests.steps import job_of, library_of

RECIPE = recipe_of(
    "pages",
    "arXiv:1912.13318",
    masked_lm_stage(tokens=12288, dropout="", channel="boxes"),
    """\
  tag:
    kind: finetune
    start: general
    corpus: task
    head: tagging
    objective: tag_cross_entropy
    strategy: full
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {epochs: 1, batch_texts: 4, length: 64}
  plain: {kind: pretrain, like: general, annotations: [], backbone: {name: transformer, positions: 64,
    dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}}}
  later: {like: tag, start: plain, annotations: boxes, backbone: {name: transformer, positions: 64, embeddings: [boxes],
    dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}}}
""",
)


def pages() -> list[dict[str, Any]]:
    """Words in lines of eight, those of the second half of each line tagged: only the box tells."""
    result = []
    for text in documents("json", "argparse", "logging"):
        words = text.split()[:48]
        places = [(number % 8, number // 8) for number in range(len(words))]
        boxes = [[100 * x, 20 * y, 100 * x + 90, 20 * y + 15] for x, y in places]
        tags = ["B-right" if x >= 4 else "O" for x, _ in places]
        result.append({"text": join_words(words), "tokens": words, "boxes": boxes, "page": [800, 200], "tags": tags})
    return result


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, rows = tmp_path_factory.mktemp("pages"), pages()
    parts = {"general": rows, "train": rows[:40], "validation": rows[40:50], "test": rows[50:60]}
    for name, part in parts.items():
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(part), folder / f"{name}.parquet")
    return {name: folder / f"{name}.parquet" for name in parts}


@pytest.fixture(scope="module")
def planned(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Plan:
    sources = {name: DataSource(digest=f"{number:032x}", path=str(path)) for number, (name, path) in
               enumerate(tables.items())}  # fmt: skip
    library = library_of(tmp_path_factory.mktemp("recipes"), pages=RECIPE)
    return plan(library.load("pages"), library, sources, TaskFamily.model_validate("layout_tagging"))


@pytest.fixture(scope="module")
def folders(planned: Plan, tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Stage → its model folder."""
    root = tmp_path_factory.mktemp("trained")
    made: dict[str, Path] = {}
    for step in planned.steps:
        run(job_of(step, made, tables, root / step.name, Runtime(log_every=4, checkpoint_every=5)))
        made[step.fingerprint] = root / step.name
    return {step.name: made[step.fingerprint] for step in planned.steps}


TABLE = "bert.embeddings.word_embeddings.channels.boxes.{}.weight"


def test_tables_train_and_are_saved_with_the_network(folders: dict[str, Path]) -> None:
    start, tuned = (load_file(folders[name] / "model.safetensors") for name in ("general", "tag"))
    for name in ("x", "y", "height", "width"):
        assert start[TABLE.format(name)].shape == (1024, 32)
        ratio = tuned[TABLE.format(name)] / start[TABLE.format(name)]
        # weight decay shrinks all rows alike, and no box selects those after 1000
        assert torch.allclose(ratio[1001:], ratio[1001, 0], rtol=1e-4) and not torch.allclose(ratio, ratio[1001, 0])
    record = ModelRecord.read(open_config(folders["tag"]))
    assert record is not None and [one.name for one in record.embeddings] == ["boxes"]
    assert [one.name for one in record.annotations] == ["boxes"], "inherited, and needed to read an example"


def test_a_folder_is_opened_by_one_call_and_reads_boxes(folders: dict[str, Path]) -> None:
    rows = [{name: page[name] for name in ("tokens", "boxes", "page")} for page in pages()[50:54]]
    answerer = Answerer(folders["tag"])
    answers = answerer.answer(rows)
    assert [len(one) for one in answers] == [len(row["tokens"]) for row in rows]
    opened = open_model(folders["tag"], "cpu")
    task = opened.record.task
    assert task is not None
    head, asked = opened.record.head, frozenset({Signal.TAG_LOGITS})
    logits = []
    for shift in (0, 300):
        moved = [{**row, "boxes": [[(a + shift) % 700, b, (a + shift) % 700 + 90, d] for a, b, _, d in row["boxes"]]}
                 for row in rows]  # fmt: skip
        encoded = head.encode(moved, task, opened.tokenizer, 64, answers=False)
        batch = {name: torch.from_numpy(value) for name, value in encoded.collate(np.arange(4)).items()}
        with torch.inference_mode():
            logits.append(head.signals(opened.network, batch, asked)[Signal.TAG_LOGITS])
    assert (logits[0] - logits[1]).abs().max() > 1e-3, "the boxes of an example change its answer"
    del batch[Field("boxes")]
    with pytest.raises(RecipeError, match="the network reads the channel 'boxes', and these rows have none"):
        head.signals(opened.network, batch, asked)


def test_a_page_is_answered_on_the_command_line(folders: dict[str, Path], tmp_path: Path) -> None:
    # as in the store: without the checkpoints of training
    shutil.copytree(folders["tag"], tmp_path / "tag", ignore=shutil.ignore_patterns("scratch"))
    page = {name: value for name, value in pages()[50].items() if name in ("tokens", "boxes", "page")}
    arguments = ["predict", "--json", "--model", str(tmp_path / "tag")]
    result = CliRunner().invoke(app, arguments, input=json.dumps(page))
    assert result.exit_code == 0, result.stderr
    assert len(json.loads(result.stdout)["answer"]) == len(page["tokens"])
    short = {"tokens": page["tokens"], "boxes": page["boxes"][:3]}
    refused = CliRunner().invoke(app, arguments, input=json.dumps(short))
    assert refused.exit_code == 2 and "the column 'boxes' holds 3 boxes for" in refused.stderr


def test_transformers_opens_the_rest(folders: dict[str, Path]) -> None:
    from transformers import AutoModel

    network, unmatched = AutoModel.from_pretrained(folders["tag"], output_loading_info=True)
    extra = {name for name in unmatched["unexpected_keys"] if "channels.boxes" in name}
    assert len(extra) == 4 and set(unmatched["unexpected_keys"]) - extra == {"classifier.bias", "classifier.weight"}
    assert {name.partition(".")[0] for name in unmatched["missing_keys"]} <= {"pooler"}
    saved = load_file(folders["tag"] / "model.safetensors")
    name = "embeddings.word_embeddings.weight"
    assert torch.equal(network.state_dict()[name], saved[f"bert.{name}"])


def test_a_start_without_embeddings_gets_new_ones(folders: dict[str, Path]) -> None:
    before, after = (load_file(folders[name] / "model.safetensors") for name in ("plain", "later"))
    assert TABLE.format("x") not in before and TABLE.format("x") in after


def test_runtimes_that_pass_no_channels_refuse_the_model(folders: dict[str, Path]) -> None:
    with pytest.raises(DataError, match=r"reads channels alongside the tokens \(boxes\).*cursus predict"):
        output_kind(folders["tag"])


def test_a_resumed_stage_ends_in_the_weights_of_an_uninterrupted_one(
    planned: Plan, folders: dict[str, Path], tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipelines.training.loop.module import StageModule

    class Interrupted(Exception):
        """Ends a training."""

    (step,) = (step for step in planned.steps if step.name == "general")
    job: Job = job_of(step, {}, tables, tmp_path / "out", Runtime(log_every=4, checkpoint_every=5))
    original = StageModule.training_step

    def failing(self: StageModule, batch: Any, index: int) -> Any:
        if self.global_step == 8:
            raise Interrupted
        return original(self, batch, index)

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(StageModule, "training_step", failing)
        run(job)
    result = run(job)
    assert result.resumed_from_step == 5
    whole = (folders["general"] / "model.safetensors").read_bytes()
    assert (job.out / "model.safetensors").read_bytes() == whole


def test_embeddings_leave_no_trace_where_there_are_none(planned: Plan) -> None:
    def stage(name: str) -> Stage:
        return next(step.stage for step in planned.steps if step.name == name)

    backbone = stage("plain").backbone
    assert backbone is not None and "embeddings" not in backbone.model_dump()
    tuned = stage("tag").backbone
    assert tuned is not None and [one.name for one in tuned.added_embeddings] == ["boxes"], "carried by inheritance"
    assert LanguageEmbedding().tables == {"rows": 16}
