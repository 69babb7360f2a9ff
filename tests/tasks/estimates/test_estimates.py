"""What a step will take is told before it runs: counted as it then happens, and corrected by what this store has
seen."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest

from pipelines.lineage import hardware
from pipelines.lineage.provenance import DataSource, Environment, Provenance
from pipelines.recipe.plan import Plan, Step
from pipelines.training.ranks.run import run
from tasks.estimates.duration import PASSED_SECONDS, WORKER_SECONDS, estimate_plan
from tasks.estimates.machine_speed import slowness
from tasks.estimates.work import KnownStep, TableSize, backbone_of, work_of
from tests.pipelines.recipe.test_checkpoints_of_others import BERT, checkpoint
from tests.small_corpus import write_tables
from tests.steps import job_of, library_of, plan_of

RECIPE = """\
name: small
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {name: wordpiece, vocab_size: 512}
    backbone: {name: transformer, architecture: bert, positions: 64,
               dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}}
    corruption: {name: token_mask, rate: 0.2}
    head: masked_lm
    objective: masked_lm
    strategy: full
    limits: {unknown: 1.0}
    budget: {tokens: 10000, batch_tokens: 512, length: 32}
  domain: {kind: adapt_domain, start: general, corpus: domain, budget: {tokens: TOKENS}}
  classify:
    kind: finetune
    start: general
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    strategy: full
    budget: {epochs: 3, batch_texts: 8, length: 64}
"""


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_tables(tmp_path_factory.mktemp("text"))


def sizes(text: dict[str, Path]) -> dict[str, TableSize]:
    found = {}
    for name, path in text.items():
        texts = pyarrow.parquet.read_table(path)["text"].to_pylist()
        found[name] = TableSize(len(texts), sum(map(len, texts)))
    return found


def planned(folder: Path, text: dict[str, Path], tokens: int = 4096) -> Plan:
    folder.mkdir(exist_ok=True)
    sources = {name: DataSource(digest=f"{n:032x}", path=str(path)) for n, (name, path) in enumerate(text.items())}
    return plan_of(library_of(folder, small=RECIPE.replace("TOKENS", str(tokens))), "small", sources)


def recorded(step: Step, seconds: float, tokens: int = 0, steps: int = 0, device: str | None = None) -> Provenance:
    environment = Environment(
        python="3", platform="", packages={}, commit=None, started="2026-01-01T00:00:00+00:00", seconds=seconds,
        device=device or hardware.device_name(hardware.accelerator()), runtime={"threads": 1},
    )  # fmt: skip
    return Provenance(
        fingerprint=step.fingerprint, recipe=step.recipe, stage=step.name, kind=str(step.stage.kind), seed=step.seed,
        identity=dict(step.identity), parents=dict(step.parents), data=dict(step.data), files={},
        result={"tokens": tokens, "steps": steps}, environment=environment,
    )  # fmt: skip


def test_what_is_counted_is_what_is_trained_on(tmp_path: Path, text: dict[str, Path]) -> None:
    plan = planned(tmp_path / "recipes", text)
    known = {step.fingerprint: KnownStep.planned(step) for step in plan.steps}
    folders: dict[str, Path] = {}
    for step in plan.steps:
        counted = work_of(known[step.fingerprint], known, sizes(text))
        result = run(job_of(step, folders, text, tmp_path / step.name))
        folders[step.fingerprint] = tmp_path / step.name
        assert counted.steps == result.steps, step.name
        # texts are not tokenised to be counted
        assert counted.tokens == pytest.approx(result.tokens, rel=0.5 if step.name == "classify" else 0), step.name


def test_the_network_of_a_checkpoint_is_that_of_all_stages_after_it(tmp_path: Path, text: dict[str, Path]) -> None:
    size = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    folder = checkpoint(tmp_path / "theirs", BERT | size)
    own = RECIPE.partition("    tokenizer:")[2].partition("    corruption:")[0]
    start = f"    start: {{checkpoint: {folder}}}\n"
    recipe = RECIPE.replace(f"    tokenizer:{own}", start).replace("TOKENS", "4096")
    sources = {name: DataSource(digest=f"{n:032x}", path=str(path)) for n, (name, path) in enumerate(text.items())}
    plan = plan_of(library_of(tmp_path, small=recipe), "small", sources)
    known = {step.fingerprint: KnownStep.planned(step) for step in plan.steps}
    backbones = [backbone_of(known[step.fingerprint], known) for step in plan.steps]
    assert [(one.width, one.layers) for one in backbones] == [(8.0, 2.0)] * 3


VECTORS = """\
name: vectors
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {name: words, vocab_size: 500, min_count: 1}
    backbone: {name: word_vectors, hidden_size: 8}
    estimate: {name: word2vec, epochs: EPOCHS}
    head: {name: noise_prediction, architecture: skip_gram}
    budget: {tokens: 2000000, length: 32}
"""


def test_every_pass_of_an_estimate_over_the_text_takes_time(tmp_path: Path, text: dict[str, Path]) -> None:
    sources = {name: DataSource(digest=f"{n:032x}", path=str(path)) for n, (name, path) in enumerate(text.items())}
    seconds = []
    for epochs in (1, 5):
        library = library_of(tmp_path, vectors=VECTORS.replace("EPOCHS", str(epochs)))
        plan = plan_of(library, "vectors", sources)
        seconds.append(estimate_plan(plan, set(), [], sizes(text), 1, 1).steps[plan.steps[0].fingerprint].seconds)
    assert seconds[1] - seconds[0] == pytest.approx(4 * 2e6 * PASSED_SECONDS * slowness(), rel=1e-3)


def test_a_stage_that_was_computed_here_is_taken_at_its_word(tmp_path: Path, text: dict[str, Path]) -> None:
    before, after = planned(tmp_path / "a", text), planned(tmp_path / "b", text, tokens=6144)
    domain = before.steps[1]
    for seconds in (2.0, 200.0):
        found = estimate_plan(after, set(), [recorded(domain, seconds, 4096, 8)], sizes(text), 1, 1)
        guess = found.steps[after.steps[1].fingerprint]
        assert seconds / 1.5 < guess.seconds < seconds * 1.5 * 1.5, "half as many tokens more"
        assert guess.seen == 1
        assert guess.off_by < found.steps[after.steps[0].fingerprint].off_by
    elsewhere = recorded(domain, 200.0, 4096, 8, device="another processor")
    guess = estimate_plan(after, set(), [elsewhere], sizes(text), 1, 1).steps[after.steps[1].fingerprint]
    assert guess.seconds < 100 and guess.seen == 0


def test_more_to_compute_takes_longer_and_less_is_left_when_some_is_stored(
    tmp_path: Path, text: dict[str, Path]
) -> None:
    small, large = planned(tmp_path / "a", text), planned(tmp_path / "b", text, tokens=40_960_000)
    tables = sizes(text)
    found = estimate_plan(large, set(), [], tables, 1, 1)
    assert found.seconds > estimate_plan(small, set(), [], tables, 1, 1).seconds + 60
    assert "minutes (" in found.text
    stored = {step.fingerprint for step in large.steps}
    assert estimate_plan(large, stored, [], tables, 1, 1).seconds == 0
    left = estimate_plan(large, stored - {large.steps[2].fingerprint}, [], tables, 1, 1)
    assert left.seconds < found.seconds - found.steps[large.steps[1].fingerprint].seconds + 1


def test_steps_that_do_not_wait_for_each_other_are_computed_side_by_side(tmp_path: Path, text: dict[str, Path]) -> None:
    plan = planned(tmp_path / "a", text)
    general, domain, classify = plan.steps
    records = [recorded(general, 300, 10_240, 20), recorded(domain, 300, 4096, 8), recorded(classify, 300, 2000, 9)]
    alone, two = (estimate_plan(plan, set(), records, sizes(text), cores, cores) for cores in (1, 2))
    longest = max(alone.steps[step.fingerprint].seconds for step in (domain, classify))
    assert two.seconds == pytest.approx(alone.seconds - longest, abs=5 * WORKER_SECONDS)
