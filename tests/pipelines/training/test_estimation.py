"""A stage that is counted: a folder like any other, the same from any number of processes and after any kill."""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.judging.evaluations.held_out import HeldOutText
from pipelines.judging.evaluations.perplexity import next_token_losses
from pipelines.judging.evaluations.stage import EVALUATION, evaluate
from pipelines.judging.subjects import Subject
from pipelines.lineage.results import RESULT, SCRATCH
from pipelines.models.opening import open_model
from pipelines.networks import register
from pipelines.parts.estimates import ngram_counts
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import Stage
from pipelines.training.estimation import COUNTED
from pipelines.training.ranks.run import run
from tests.small_corpus import documents
from tests.streams import table_of

ORDER = 4


def job_of(tables: dict[str, Path], out: Path, order: int = ORDER, processes: int = 1) -> Job:
    stage = Stage.model_validate(
        {
            "kind": "pretrain",
            "corpus": "general",
            "tokenizer": {"name": "gpt_bpe", "vocab_size": 512},
            "backbone": {"name": "ngram", "order": order},
            "estimate": "kneser_ney",
            "head": "causal_lm",
            "budget": {"length": 64},
        }
    )
    return Job(
        fingerprint="c" * 64, recipe="r", stage_name="general", stage=stage, seed=0, language="en", tables=tables,
        out=out, runtime=Runtime(threads=processes),
    )  # fmt: skip


def digests(folder: Path) -> dict[str, str]:
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


@pytest.fixture(scope="module")
def counted(tables: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    job = job_of(tables, tmp_path_factory.mktemp("counted"))
    result = run(job)
    assert result.tokens > 10_000 and result.steps == 0 and result.parameters > 1000 and (job.out / RESULT).exists()
    return job.out


def test_it_opens_by_one_call_and_by_the_auto_class(counted: Path) -> None:
    opened = open_model(counted, "cpu")
    assert opened.record.head.name == "causal_lm" and opened.network.config.order == ORDER
    assert not any(parameter.requires_grad for parameter in opened.network.parameters())
    register()
    network, unmatched = AutoModelForCausalLM.from_pretrained(counted, output_loading_info=True)
    assert not unmatched["missing_keys"] and not unmatched["unexpected_keys"]
    ids = torch.tensor([opened.tokenizer.encode("Return the value of an argument.")])
    assert torch.equal(network(ids).logits, opened.network(ids).logits)
    assert torch.allclose(network(ids).logits.exp().sum(-1), torch.ones(ids.shape), atol=1e-5)


def test_padding_and_neighbouring_rows_change_nothing(counted: Path) -> None:
    network = open_model(counted, "cpu").network
    ids = torch.randint(3, 500, (2, 12), generator=torch.Generator().manual_seed(0))
    together = network(ids).logits
    assert torch.equal(network(ids[:1, :7]).logits, together[:1, :7])


def test_the_folder_is_the_same_from_small_buckets_in_two_processes(
    counted: Path, tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ngram_counts, "BUCKET", 5000)
    monkeypatch.setattr(ngram_counts, "CHUNK", 1000)
    run(job_of(tables, tmp_path / "two", processes=2))
    before, after = digests(counted), digests(tmp_path / "two")
    assert before == after and "model.safetensors" in before


def killed_at(step: str, times: int) -> Callable[..., object]:
    """The function `step` of the counting module, which does not survive being called `times` times."""
    real, calls = getattr(ngram_counts, step), [0]

    def dies(*arguments: object, **options: object) -> object:
        calls[0] += 1
        if calls[0] == times:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    return dies


@pytest.mark.parametrize(("step", "times"), [("_divide", 2), ("_contexts", 8), ("_contexts", 25), ("_join", 2)])
def test_after_a_kill_the_counts_are_those_of_an_uninterrupted_run(
    step: str, times: int, counted: Path, tables: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ngram_counts, "BUCKET", 4000)
    job = job_of(tables, tmp_path / "killed")
    if not (child := os.fork()):
        try:
            setattr(ngram_counts, step, killed_at(step, times))
            run(job)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not (job.out / RESULT).exists() and not (job.out / "config.json").exists()
    scratch = job.out / SCRATCH / COUNTED
    done = [*scratch.glob("order-[0-9]/keys.bin"), *scratch.glob("order-*/units/0*/keys.bin")]
    written = {path: path.stat().st_mtime_ns for path in done if "units" not in path.parts}
    assert done, "something was finished before"
    run(job)
    assert digests(job.out) == digests(counted)
    assert all(path.stat().st_mtime_ns == time for path, time in written.items()), "a finished order is kept"


def test_a_text_without_documents_is_an_error(tables: dict[str, Path], tmp_path: Path) -> None:
    nothing = {**tables, "general": table_of([], tmp_path / "empty.parquet")}
    with pytest.raises(DataError, match="no documents"):
        run(job_of(nothing, tmp_path / "out"))


def test_the_perplexity_of_a_report_is_that_of_the_tables(
    counted: Path, tables: dict[str, Path], tmp_path: Path
) -> None:
    unigram = tmp_path / "unigram"
    run(job_of(tables, unigram, order=1))
    suite = [{"name": "perplexity", "length": 64}]
    stage = Stage.model_validate({"kind": Kind.EVALUATE, "start": ["one", "four"], "suite": suite})
    subjects = tuple(
        Subject(stage=name, seed=0, fingerprint=name * 8, folder=folder, answers=False)
        for name, folder in (("one", unigram), ("four", counted))
    )
    job = job_of(tables, tmp_path / "report").model_copy(update={"stage": stage, "subjects": subjects})
    metrics = evaluate(job).metrics
    assert 1 < metrics["perplexity/four"] < metrics["perplexity/one"] < 512
    record = json.loads((job.out / EVALUATION).read_text())["sections"]["perplexity"]["stages"]
    assert [one["perplexity"]["mean"] for one in record] == [metrics["perplexity/one"], metrics["perplexity/four"]]


def test_the_loss_of_a_text_is_the_product_of_its_tokens(counted: Path) -> None:
    opened = open_model(counted, "cpu")
    row = opened.tokenizer.encode(documents("asyncio")[0], add_special_tokens=False)[:40]
    (nats,) = next_token_losses(opened, [HeldOutText([row], 1)])
    expected, start = 0.0, int(opened.tokenizer.eos_token_id)
    for at, token in enumerate(row):
        history = torch.tensor([[start, *row[:at]]])
        expected -= float(opened.network(history).logits[0, -1, token])
    assert nats == pytest.approx(expected, rel=1e-5) and math.isfinite(nats)


def test_a_tokenizer_is_taken_over_from_another_stage(
    counted: Path, tables: dict[str, Path], tmp_path: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    tokenizer.save_pretrained(tmp_path / "start")
    job = job_of(tables, tmp_path / "out", order=2)
    untrained = job.stage.model_copy(update={"start": {"untrained": "general"}, "corpus": ("domain",)})
    run(job.model_copy(update={"stage": untrained, "start": tmp_path / "start"}))
    assert open_model(tmp_path / "out", "cpu").tokenizer.get_vocab() == tokenizer.get_vocab()
