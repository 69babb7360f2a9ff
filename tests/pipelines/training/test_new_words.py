"""A vocabulary that grows: what was known stays as it was, what is new begins as the mean of what it was cut into."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import CHECKPOINTS, RESULT, SCRATCH, Result
from pipelines.models.opening import open_tokenizer
from pipelines.models.weights import read_weights
from pipelines.parts.tokenizers.byte_bpe import ByteBPE
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.recipe.job import Job
from pipelines.recipe.profiles import smoke
from pipelines.training.assembly.assemble import assemble
from pipelines.training.assembly.new_words import add_words, chosen_words
from pipelines.training.ranks.run import run
from tests.pipelines.training.small_recipe import RECIPE
from tests.small_corpus import documents
from tests.steps import job_of, library_of, plan_of

GROWING = (
    RECIPE
    + """\
  domain:
    kind: adapt_domain
    start: general
    corpus: domain
    vocabulary: {tokens: 40}
    budget: {tokens: 10240}
  after: {kind: adapt_task, start: domain, corpus: task_text, budget: {tokens: 2048}}
"""
)
DOMAIN = documents("asyncio", "multiprocessing", "concurrent")


@pytest.fixture(scope="module")
def grown(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Job]:
    """The jobs general, domain and after, each run."""
    root = tmp_path_factory.mktemp("grown")
    (root / "recipes").mkdir()
    text = GROWING.replace("tokens: 204800", "tokens: 10240")
    plan = plan_of(library_of(root / "recipes", small=text), "small", sources)
    folders: dict[str, Path] = {}
    jobs: dict[str, Job] = {}
    for step in plan.steps:
        if step.name in ("general", "domain", "after"):
            jobs[step.name] = job_of(step, folders, tables, root / step.name)
            run(jobs[step.name])
            folders[step.fingerprint] = root / step.name
    return jobs


def test_the_words_are_those_that_cost_the_most_tokens(tokenizer: PreTrainedTokenizerFast) -> None:
    fast = tokenizer.backend_tokenizer
    words = chosen_words(fast, DOMAIN, 30)
    spoken = [
        word for text in DOMAIN for word, _ in fast.pre_tokenizer.pre_tokenize_str(fast.normalizer.normalize_str(text))
    ]
    costs = {
        word: spoken.count(word) * (len(fast.encode(word, add_special_tokens=False).ids) - 1) for word in set(spoken)
    }
    assert len(words) == 30 == len(set(words)) and words == chosen_words(fast, iter(DOMAIN), 30)
    assert [costs[word] for word in words] == sorted((costs[word] for word in words), reverse=True)
    others = [word for word in costs if word not in words and word.isalpha() and spoken.count(word) >= 3]
    assert max(costs[word] for word in others) <= min(costs[word] for word in words)


def test_new_words_are_one_token_and_all_else_is_as_it_was(tmp_path: Path) -> None:
    texts = documents("logging", "argparse", "email", "json")
    before, after = (WordPiece(vocab_size=512).train(texts) for _ in range(2))
    add_words(after, DOMAIN, 50)
    after.save_pretrained(tmp_path)
    opened = AutoTokenizer.from_pretrained(tmp_path)
    new = after.convert_ids_to_tokens(list(range(len(before), len(after))))
    assert len(after) == len(before) + 50 == len(opened)
    for number, word in enumerate(new):
        assert opened(word, add_special_tokens=False)["input_ids"] == [len(before) + number]
        assert len(before(word, add_special_tokens=False)["input_ids"]) > 1
    without = 0
    for text in [*texts, *DOMAIN]:
        ids, words = opened(text)["input_ids"], opened.backend_tokenizer.normalizer.normalize_str(text)
        spoken = [word for word, _ in opened.backend_tokenizer.pre_tokenizer.pre_tokenize_str(words)]
        if not any(word.startswith(tuple(new)) for word in spoken):
            without += 1
            assert ids == before(text)["input_ids"]
        assert len(ids) <= len(before(text)["input_ids"]) + 2
        assert opened.decode(ids) == before.decode(before(text)["input_ids"])
    assert without > 50


def test_vectors_begin_as_the_mean_of_the_old_pieces(grown: dict[str, Job]) -> None:
    job = grown["domain"]
    assert job.start is not None
    before, after = open_tokenizer(job.start), open_tokenizer(job.out)
    network = assemble(job.stage, job.start, after, {"": None}, "cpu").eval()
    old = AutoModelForMaskedLM.from_pretrained(job.start).eval()
    taught, known = network.get_input_embeddings().weight, old.get_input_embeddings().weight
    assert len(after) == len(before) + 40 and len(taught) % 64 == 0 and len(taught) >= len(after)
    assert torch.equal(taught[: len(known)][: len(before)], known[: len(before)])
    bias, known_bias = network.get_output_embeddings().bias, old.get_output_embeddings().bias
    for word in range(len(before), len(after)):
        pieces = before(after.convert_ids_to_tokens(word), add_special_tokens=False)["input_ids"]
        assert len(pieces) > 1 and torch.equal(taught[word], known[pieces].mean(0))
        assert torch.equal(bias[word], known_bias[pieces].mean(0))
    assert network.get_output_embeddings().weight is taught, "input and output stay one table"


@torch.no_grad()
def test_text_without_new_words_has_the_logits_it_had(grown: dict[str, Job]) -> None:
    job = grown["domain"]
    assert job.start is not None
    before, after = open_tokenizer(job.start), open_tokenizer(job.out)
    network = assemble(job.stage, job.start, after, {"": None}, "cpu").eval()
    old = AutoModelForMaskedLM.from_pretrained(job.start, attn_implementation="eager").eval()
    compared = 0
    for text in documents("logging")[:40]:
        ids = before(text, truncation=True, max_length=48, return_tensors="pt")["input_ids"]
        if torch.equal(ids, after(text, truncation=True, max_length=48, return_tensors="pt")["input_ids"]):
            now, then = (one(input_ids=ids).logits[..., : len(before)] for one in (network, old))
            assert torch.allclose(now, then, rtol=1e-5, atol=1e-6)
            compared += 1
    assert compared > 10


def test_the_next_stage_goes_on_with_the_grown_vocabulary(grown: dict[str, Job]) -> None:
    domain, after = grown["domain"], grown["after"]
    assert after.stage.vocabulary is None and after.stage.tokenizer == domain.stage.tokenizer
    assert open_tokenizer(after.out).get_vocab() == open_tokenizer(domain.out).get_vocab()
    opened = AutoModelForMaskedLM.from_pretrained(after.out)
    size = json.loads((after.out / "config.json").read_text())["vocab_size"]
    assert opened.get_input_embeddings().num_embeddings == size >= len(open_tokenizer(after.out))
    told = [
        Result.model_validate_json((grown[name].out / RESULT).read_bytes()).metrics for name in ("general", "domain")
    ]
    assert told[1]["fertility/domain"] > 1 and "fertility/general" in told[0] and "unknown/general" in told[0]


def test_an_interrupted_stage_that_grows_ends_as_if_never(grown: dict[str, Job], tmp_path: Path) -> None:
    often = grown["domain"].runtime.model_copy(update={"checkpoint_every": 4})
    job, whole = grown["domain"].model_copy(update={"out": tmp_path, "runtime": often}), grown["domain"].out
    (tmp_path / SCRATCH).mkdir()
    run(job)
    # as if it had ended right after its last checkpoint
    (tmp_path / RESULT).unlink()
    assert any((tmp_path / SCRATCH / CHECKPOINTS).iterdir())
    assert (run(job).resumed_from_step or 0) >= 4
    after, before = read_weights(tmp_path), read_weights(whole)
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_another_kind_of_vocabulary_is_refused(sources: dict[str, DataSource], tmp_path: Path) -> None:
    tokenizer = ByteBPE(vocab_size=512).train(documents("json"))
    with pytest.raises(RecipeError, match="can be added to a WordPiece vocabulary, and that of the start is BPE"):
        add_words(tokenizer, DOMAIN, 10)
    for old, new, said in [
        (
            "name: wordpiece",
            "name: byte_bpe",
            r"vocabulary needs a tokenizer with new_words; byte_bpe has mask; .* fit: wordpiece",
        ),
        (
            "start: general\n    corpus: domain",
            "start: {untrained: general}\n    corpus: domain",
            "only a stage that continues another on plain text can add words",
        ),
        ("vocabulary: {tokens: 40}", "vocabulary: {tokens: 0}", "greater than 0"),
        ("vocabulary: {tokens: 40}", "vocabulary: {token: 4}", "Did you mean 'tokens'"),
    ]:
        assert old in GROWING
        with pytest.raises(RecipeError, match=said):
            library_of(tmp_path, small=GROWING.replace(old, new)).load("small")
    shrunk = smoke(library_of(tmp_path, small=GROWING).load("small")).stages["domain"]
    assert shrunk.vocabulary is not None and shrunk.vocabulary.tokens <= 40


def test_a_vocabulary_of_the_domains_own_is_a_stage_without_a_start(tmp_path: Path) -> None:
    text = GROWING.replace("    corpus: general\n", "    corpus: domain\n", 1)
    stage = library_of(tmp_path, small=text).load("small").stages["general"]
    assert stage.corpus == ("domain",) and stage.start is None and stage.tokenizer is not None
