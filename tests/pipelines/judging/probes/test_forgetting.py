"""The forgetting probe: the same tokens for every model, the loss itself, and tasks made from plain text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from pipelines.errors import DataError
from pipelines.judging.probes import ProbedStage as Looked
from pipelines.judging.probes.forgetting import LOSS, TABLE, ForgettingProbe
from pipelines.judging.probes.held_out_loss import losses, prediction_signal
from pipelines.judging.probes.model import ProbedModel
from pipelines.judging.probes.sentence_tasks import sentence_tasks, sentences_of
from pipelines.judging.probes.stage import probe as probe_stage
from pipelines.judging.probes.stage import read_probe_samples
from pipelines.recipe.figures import recorded_figures
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Signal
from tests.pipelines.judging.probes.small_models import job_on, opened, save_model, write_table
from tests.small_corpus import documents
from tests.small_tasks import chinese_reviews

TEXTS = documents("tarfile", "ssl", "shutil", "pathlib")
GPT = {
    "name": "transformer",
    "architecture": "gpt2",
    "positions": 128,
    "dims": {"n_embd": 24, "n_layer": 2, "n_head": 3},
}


def model_on(folder: Path, texts: list[str]) -> ProbedModel:
    tables = {TABLE: write_table(folder.parent / "held.parquet", [{"text": text} for text in texts])}
    return opened(folder, tables, "text_classification")


def test_the_loss_is_that_of_transformers_at_the_masked_places(tmp_path: Path) -> None:
    model = model_on(save_model(tmp_path / "model"), TEXTS)
    found, asked = losses(model, TEXTS[:5], Signal.MASKED_LOGITS, 0.15, 0)
    for number, text in enumerate(TEXTS[:5]):
        encoding = model.encode([[text]], word_level=False)[0]
        own = np.flatnonzero(encoding.words >= 0)
        places = np.sort(np.random.default_rng([0, 11, number]).permutation(own)[: max(1, round(0.15 * len(own)))])
        ids, labels = torch.tensor(encoding.ids)[None], torch.full((1, len(encoding.ids)), -100)
        labels[0, places] = ids[0, places]
        ids[0, places] = model.opened.tokenizer.mask_token_id
        with torch.no_grad():
            expected = model.opened.network(input_ids=ids, labels=labels).loss.item()
        assert found[number] == pytest.approx([expected * len(places), len(places)], rel=1e-4)
    again, same = losses(model, TEXTS[:5], Signal.MASKED_LOGITS, 0.15, 0)
    other = losses(model, TEXTS[:5], Signal.MASKED_LOGITS, 0.15, 1)[1]
    assert asked == same != other and (again == found).all()


def test_the_loss_of_what_reads_from_left_to_right_is_that_of_transformers(tmp_path: Path) -> None:
    model = model_on(save_model(tmp_path / "model", head="causal_lm", body=GPT), TEXTS)
    signal, way = prediction_signal(model)
    assert (signal, way) == (Signal.NEXT_LOGITS, "next tokens")
    found, _ = losses(model, TEXTS[:3], signal, 0.15, 0)
    for number, text in enumerate(TEXTS[:3]):
        encoding = model.encode([[text]], word_level=False)[0]
        ids = torch.tensor(encoding.ids)[None]
        labels = torch.where(torch.tensor(encoding.words)[None] >= 0, ids, -100)
        with torch.no_grad():
            expected = model.opened.network(input_ids=ids, labels=labels).loss.item()
        assert found[number, 0] / found[number, 1] == pytest.approx(expected, rel=1e-4)


def test_boundaries_are_compared_where_they_were_asked_the_same(tmp_path: Path) -> None:
    task = Task(TaskFamily.default(), ("a", "b"))
    folders = {
        "general": [save_model(tmp_path / "0", 0)],
        "domain": [save_model(tmp_path / "1", 1), save_model(tmp_path / "2", 2)],
        "classify": [save_model(tmp_path / "3", 3, "sequence_classification", task)],
        "causal": [save_model(tmp_path / "4", 4, "causal_lm", body=GPT)],
    }
    probe = ForgettingProbe(documents=60, sentences=400)
    stages = [
        Looked(name, tuple(range(len(made))), tuple(probe.observe(model_on(folder, TEXTS)) for folder in made))
        for name, made in folders.items()
    ]
    record = probe.record(stages, 0)
    by_name = {one["stage"]: one for one in record["boundaries"]}
    # random weights know nothing: the loss is above that of a uniform guess among 600 tokens, and far above 1
    assert all(by_name[name][LOSS]["mean"] > np.log(500) for name in ("general", "domain", "causal"))
    for one in by_name.values():
        assert LOSS not in one or one[LOSS]["low"] < one[LOSS]["mean"] < one[LOSS]["high"]
    assert LOSS not in by_name["classify"] and "answers a task" in by_name["classify"]["way"]
    changes = {(one["from"], one["to"]): one for one in record["changes"]}
    apart = changes["general", "domain"][LOSS]
    assert apart["difference"] == pytest.approx(by_name["domain"][LOSS]["mean"] - by_name["general"][LOSS]["mean"])
    assert LOSS not in changes["domain", "classify"] and LOSS not in changes["classify", "causal"]
    assert LOSS not in by_name["causal"]["since_first"], "another way of asking is another loss"
    assert {"sentence_length", "bigram_shift"} <= set(changes["classify", "causal"])
    assert record["documents"] == 60 and by_name["domain"]["seeds"] == [0, 1]


def test_a_loss_that_rises_is_worse(tmp_path: Path) -> None:
    probe = ForgettingProbe(documents=60, sentences=50)
    model = model_on(save_model(tmp_path / "0"), TEXTS)
    before = probe.observe(model)
    with torch.no_grad():
        for name, weights in model.opened.network.named_parameters():
            if "position" not in name:
                weights.mul_(1.5)
    after = probe.observe(model)
    (change,) = probe.record([Looked("general", (0,), (before,)), Looked("domain", (0,), (after,))], 0)["changes"]
    assert change[LOSS]["difference"] > 0 and change[LOSS]["verdict"] == "worse"


def test_a_claim_reads_the_loss_that_the_record_shows(tmp_path: Path) -> None:
    folders = {"general": [save_model(tmp_path / "0", 0)], "numbered": [save_model(tmp_path / "1", 0, numbered=1)]}
    tables = {TABLE: write_table(tmp_path / "held.parquet", [{"text": text} for text in TEXTS])}
    probe = ForgettingProbe(documents=20, sentences=50)
    result = probe_stage(job_on(folders, tables, "text_classification", [probe], tmp_path / "out"))
    samples = read_probe_samples(tmp_path / "out")
    (figure,) = probe.figures()
    assert figure.lower and recorded_figures("text_classification")[figure.name] == {"forgetting": figure}
    for stage in folders:
        (rows,) = samples[figure.sample, stage]
        assert figure.score(rows) == pytest.approx(result.metrics[f"forgetting/loss/{stage}"])
        assert len(rows) == 20
    assert result.metrics["forgetting/loss/general"] != result.metrics["forgetting/loss/numbered"]


def test_nothing_held_out_is_told(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "0")
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "none.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": pyarrow.array([], pyarrow.string())}), path)
    with pytest.raises(DataError, match="general_heldout is empty.*remove the probe forgetting"):
        ForgettingProbe().observe(opened(folder, {TABLE: path}, "text_classification"))


def test_tasks_are_what_they_say() -> None:
    tasks = {task.name: task for task in sentence_tasks(TEXTS, 0, 2000)}
    assert set(tasks) == {"sentence_length", "word_content", "bigram_shift"}
    sizes = [
        (len(text.split()), int(label))
        for text, label in zip(tasks["sentence_length"].texts, tasks["sentence_length"].labels, strict=True)
    ]
    assert sorted(sizes, key=lambda pair: pair[0]) == sorted(sizes), "longer sentences are in later bins"
    content = tasks["word_content"]
    for text, label in zip(content.texts, content.labels, strict=True):
        assert [word.lower() for word in text.split() if word.lower() in set(content.labels)].count(label) >= 1
        assert len({word.lower() for word in text.split()} & set(content.labels)) == 1
    shift = tasks["bigram_shift"]
    written = {" ".join(words) for text in TEXTS for words in sentences_of(text)}
    for text, label in zip(shift.texts, shift.labels, strict=True):
        assert (text in written) == (label == "as written")
    assert 0.4 < Counter(shift.labels)["swapped"] / len(shift.labels) < 0.6
    for task in tasks.values():
        sides = [{d for d, t in zip(task.documents, task.tested, strict=True) if t is side} for side in (True, False)]
        assert sides[0] and not sides[0] & sides[1], "no document stands on both sides"


def test_chinese_sentences_are_words_without_spaces() -> None:
    reviews = [text for text, _ in chinese_reviews()]
    tasks = {task.name: task for task in sentence_tasks(reviews, 0, 500)}
    assert "bigram_shift" in tasks and "sentence_length" in tasks
    assert sum(" " in text for text in tasks["bigram_shift"].texts) < 0.2 * len(tasks["bigram_shift"].texts)
    assert max(map(len, sentences_of("这本书的内容很好，读起来非常轻松。推荐给所有喜欢历史的大家。"))) > 4
