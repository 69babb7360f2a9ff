"""A network that reads others: what it reads, how words meet, what trains, what is kept and what is saved."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from pipelines.lineage.results import METRICS, RESULT, Result
from pipelines.models.features import encode_examples
from pipelines.models.opening import open_model
from pipelines.networks.features import FeatureReader, at_words
from pipelines.recipe.job import Job
from pipelines.recipe.plan import Plan, Step
from pipelines.serving.answering.answerer import Answerer
from pipelines.training.assembly.feature_cache import FeatureCache
from pipelines.training.assembly.features import readers_of
from pipelines.training.batches.examples import ExampleBatches
from pipelines.training.metrics_log import MetricsLog
from pipelines.training.ranks.run import run
from pipelines.vocabulary import Field
from tests.pipelines.training.reading_recipe import RUNTIME, reading_plan
from tests.steps import job_of

SENTENCES = [{"tokens": ["Return", "unhandled(messages)", "of", "naïveté", "."]}, {"tokens": ["Log"]}]


class PulledPlugError(Exception):
    """The power went."""


@dataclass
class Reading:
    """The recipe, whose steps are computed when they are first asked for."""

    plan: Plan
    tables: dict[str, Path]
    root: Path
    folders: dict[str, Path] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)

    def step(self, name: str) -> Step:
        return next(step for step in self.plan.steps if step.name == name)

    def job(self, name: str, out: Path) -> Job:
        for parent in self.step(name).parents.values():
            self.made(next(step.name for step in self.plan.steps if step.fingerprint == parent))
        job = job_of(self.step(name), self.folders, self.tables, out, RUNTIME)
        return Job.model_validate_json(job.model_dump_json())

    def made(self, name: str) -> Path:
        step = self.step(name)
        if step.fingerprint not in self.folders:
            job = self.job(name, self.root / name)
            self.results[name] = run(job)
            self.folders[step.fingerprint] = job.out
        return self.folders[step.fingerprint]


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    root = tmp_path_factory.mktemp("reading")
    return Reading(*reading_plan(root), root)


def weights(folder: Path) -> dict[str, Tensor]:
    return load_file(folder / "model.safetensors")


def test_what_is_read_is_a_parent_whose_name_changes_nothing(reading: Reading) -> None:
    step = reading.step("tag")
    assert step.parents == {
        "features": reading.step("elmo").fingerprint,
        "features:1": reading.step("vectors").fingerprint,
    }
    assert "from" not in json.dumps(step.identity["stage"])
    assert "features" not in reading.step("bert").identity["stage"], "a stage without features is what it was"
    (read,) = reading.step("above_bert").identity["stage"]["features"]
    assert read == {"layers": "concat", "subwords": "mean", "trains": False, "dropout": 0.0}


@pytest.mark.parametrize(("name", "read"), [("tag", "elmo"), ("above_bert", "bert"), ("first", "bert")])
def test_a_frozen_network_stays_what_it_was(reading: Reading, name: str, read: str) -> None:
    folder, start = weights(reading.made(name)), weights(reading.made(read))
    prefix = "bilstm.features.0.encoder."
    kept = {key.removeprefix(prefix): value for key, value in folder.items() if key.startswith(prefix)}
    assert kept and all(torch.equal(value, start[f"{read}.{key}"]) for key, value in kept.items())


def test_a_network_that_trains_moves_with_the_task(reading: Reading) -> None:
    folder, start = weights(reading.made("tuned")), weights(reading.made("bert"))
    prefix = "bilstm.features.0.encoder."
    moved = [
        key for key, value in folder.items()
        if key.startswith(prefix) and not torch.equal(value, start["bert." + key.removeprefix(prefix)])
    ]  # fmt: skip
    assert any("layer.1" in key for key in moved) and any("word_embeddings" in key for key in moved)
    assert reading.results["tuned"].metrics.get("trained_share", 1) == 1


def test_the_mix_is_learned_and_reported(reading: Reading) -> None:
    folder = reading.made("tag")
    metrics, saved = reading.results["tag"].metrics, weights(folder)
    shares = [metrics[f"features/0/layer_{layer}"] for layer in range(3)]
    assert sum(shares) == pytest.approx(1, abs=1e-5) and len({round(share, 4) for share in shares}) > 1
    mix = "bilstm.features.0.mix"
    assert shares == pytest.approx(saved[f"{mix}.weights"].softmax(0).tolist(), abs=1e-6)
    assert metrics["features/0/gamma"] == pytest.approx(float(saved[f"{mix}.gamma"]), abs=1e-6) != 1
    assert not any(name.startswith("features/1") for name in metrics), "the top layer alone is no mix"


@pytest.mark.parametrize("name", ["tag", "above_bert", "first", "tuned", "further"])
def test_the_folder_is_all_that_it_takes(reading: Reading, name: str, tmp_path: Path) -> None:
    """It is opened by one call, elsewhere, without what it was made of."""
    folder = shutil.copytree(reading.made(name), tmp_path / "alone")
    expected = Answerer(reading.made(name)).answer(SENTENCES)
    hidden = [path.rename(path.with_name(f"{path.name}-away")) for path in map(reading.made, ("bert", "elmo"))]
    try:
        answers = Answerer(folder).answer(SENTENCES)
    finally:
        for path in hidden:
            path.rename(path.with_name(path.name.removesuffix("-away")))
    assert answers == expected and [len(one) for one in answers] == [5, 1]


@torch.no_grad()
def test_every_token_has_the_vector_of_its_word(reading: Reading) -> None:
    """The tagger's input at each token against the encoder run by hand on the words' own tokens."""
    opened = open_model(reading.made("above_bert"), "cpu")
    head, task = opened.record.head, opened.record.task
    assert task is not None
    encoded = encode_examples(head, SENTENCES, task, opened.tokenizer, 64, opened.features, answers=False)
    batch = {name: torch.from_numpy(value) for name, value in encoded.collate(np.arange(2)).items()}
    (reader,) = readers_of(opened.network)
    found = reader.combine(
        reader.states(*(batch[name][:, 0] for name in (Field.FEATURE_IDS, Field.FEATURE_MASK, Field.FEATURE_WORDS)))
    )
    bert, own = open_model(reading.made("bert"), "cpu"), opened.tokenizer
    for row, sentence in enumerate(SENTENCES):
        cut = bert.tokenizer(sentence["tokens"], is_split_into_words=True, return_tensors="pt")
        states = torch.cat(bert.network.base_model(cut["input_ids"], output_hidden_states=True).hidden_states, dim=-1)[
            0
        ]
        words = own(sentence["tokens"], is_split_into_words=True).word_ids()
        assert words[-1] is None and len(words) == len(sentence["tokens"]) + 1
        for token, word in enumerate(words):
            at = [position for position, other in enumerate(cut.word_ids()) if other == word and word is not None]
            expected = states[at].mean(0) if at else torch.zeros(found.shape[-1])
            assert torch.allclose(found[row, token], expected, atol=1e-5)
        assert not found[row, len(words) :].any()


def test_first_and_mean_by_hand() -> None:
    states = torch.arange(12.0).view(1, 4, 3)
    words = torch.tensor([[[-1, -1], [1, 2], [3, 3]]])
    assert at_words(states, words, "first")[0].tolist() == [[0, 0, 0], [3, 4, 5], [9, 10, 11]]
    assert at_words(states, words, "mean")[0].tolist() == [[0, 0, 0], [4.5, 5.5, 6.5], [9, 10, 11]]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows that any reader has read, a number a call."""
    calls: list[int] = []
    original = FeatureReader.states

    def states(self: FeatureReader, ids: Tensor, mask: Tensor, words: Tensor) -> tuple[Tensor, ...]:
        calls.append(len(ids))
        return original(self, ids, mask, words)

    monkeypatch.setattr(FeatureReader, "states", states)
    return calls


def test_a_frozen_network_reads_every_sentence_once(
    reading: Reading, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = reading.job("above_bert", tmp_path)
    calls = counted(monkeypatch)
    run(job)
    assert sum(calls) == 24 + 12, "training and validation examples, not those of five epochs"


@torch.no_grad()
def test_what_is_kept_is_what_is_read_again(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_model(reading.made("tag"), "cpu")
    head, task = opened.record.head, opened.record.task
    assert task is not None
    encoded = encode_examples(head, SENTENCES, task, opened.tokenizer, 64, opened.features, answers=False)
    cache = FeatureCache(opened.network, encoded)
    calls = counted(monkeypatch)
    for order in ([1, 0], [0], [1]):
        batches = ExampleBatches(encoded, size=2, steps=1, seed=0)
        batch = {Field(name): value for name, value in batches._with_item_ids(0, np.asarray(order)).items()}
        given = cache.with_states(batch, batch[Field.ITEMS])
        kept = opened.network.base_model(**inputs(given)).last_hidden_state
        read = opened.network.base_model(**inputs(batch)).last_hidden_state
        assert torch.allclose(kept, read, atol=2e-2), "apart from being kept in half precision"
        real = batch[Field.ATTENTION_MASK].bool()
        assert not torch.equal(kept[real][0], kept[real][-1]) or len(order) == 1
    # two networks, each once over both sentences, then in every pass without the cache
    assert calls == [2, 2, 2, 2, 1, 1, 1, 1]


def inputs(batch: dict[Field, Tensor]) -> dict[str, Tensor]:
    return {str(name): value for name, value in batch.items() if name is not Field.ITEMS}


def interrupted(job: Job, at: int) -> None:
    """Run `job` until optimizer step `at`, where it ends without a word."""
    original: Callable[..., None] = MetricsLog.train

    def train(self: MetricsLog, step: int, *arguments: object, **keywords: object) -> None:
        if step == at:
            raise PulledPlugError
        original(self, step, *arguments, **keywords)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(PulledPlugError):
        patch.setattr(MetricsLog, "train", train)
        run(job)


@pytest.mark.parametrize(("name", "at", "kept"), [("tag", 10, 8), ("tuned", 6, 4), ("elmo", 14, 12)])
def test_it_ends_as_if_never_interrupted(reading: Reading, name: str, at: int, kept: int, tmp_path: Path) -> None:
    whole, job = reading.made(name), reading.job(name, tmp_path)
    interrupted(job, at)
    assert not (job.out / RESULT).exists()
    assert run(job).resumed_from_step == kept
    assert (job.out / METRICS).read_text() == (whole / METRICS).read_text()
    assert (job.out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_words_beyond_a_row_are_told_and_have_no_vector(reading: Reading, caplog: pytest.LogCaptureFixture) -> None:
    opened = open_model(reading.made("above_bert"), "cpu")
    head, task = opened.record.head, opened.record.task
    assert task is not None and opened.features[0].length == 64
    long = [{"tokens": ["unhandled(messages)"] * 40}]
    encoded = encode_examples(head, long, task, opened.tokenizer, 64, opened.features, answers=False)
    words = encoded.collate(np.arange(1))[Field.FEATURE_WORDS][0, 0]
    covered = int((words[:, 0] >= 0).sum())
    assert 0 < covered < 40 and f"feature 0: {40 - covered} of 40 words have no vector" in caplog.text
