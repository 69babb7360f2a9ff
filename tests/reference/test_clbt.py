"""A map between the states of two encoders: its loss against the equation in float64, the states at aligned words, the
map in the network that is saved, and a tagger of one encoder that reads the mapped states of the other."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoConfig, PreTrainedModel

from pipelines.corpora.documentation.transcription import aligned_translations, transcribed
from pipelines.errors import DataError, RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.models.opening import open_model
from pipelines.networks.backbone_with_head import BackboneWithHead
from pipelines.networks.state_map import MODULE, StateMap
from pipelines.parts.annotations.aligned_states import AlignedStates
from pipelines.parts.heads.token_states import TokenStates
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.map_states import ALIGNED, MapStates
from pipelines.parts.strategies.state_map import StateMapping
from pipelines.recipe.job import Runtime
from pipelines.recipe.plan import plan
from pipelines.task_families import TaskFamily
from pipelines.task_families.tokenized import TokenizedText
from pipelines.training.assembly.parameter_groups import trainable_groups
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from pipelines.vocabulary import Field, Signal
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of
from tests.small_corpus import documents
from tests.small_tasks import write_family
from tests.steps import job_of, library_of

WIDTH, WEIGHT = 32, f"bert.{MODULE}.linear.weight"
RECIPE = recipe_of(
    "small",
    "arXiv:1909.06775",
    masked_lm_stage("english", tokens=8192, width=WIDTH).replace("corpus: general", "corpus: domain"),
    """\
  other: {like: english, corpus: other}
  mapped:
    kind: adapt_domain
    start: other
    corpus: aligned
    texts: translation
    annotations: {name: aligned_states, from: english}
    layout: packed_documents
    head: token_states
    objective: map_states
    strategy: state_map
    optimizer: {lr: 1.0e-2, weight_decay: 0, precision: 32-true}
    budget: {tokens: 40960, batch_tokens: 1024, length: 32}
  tagger:
    kind: finetune
    start: english
    corpus: task
    head: crf_tagging
    objective: crf
    strategy: frozen
    optimizer: {lr: 1.0e-2, precision: 32-true}
    budget: {epochs: 2, batch_texts: 8, length: 32}
  mapped_tagger:
    kind: finetune
    start: {backbone: mapped, head: tagger}
    corpus: task
    annotations: []
    head: crf_tagging
    budget: {tokens: 0, length: 32}
""",
)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def network() -> BackboneWithHead:
    torch.manual_seed(0)
    dims = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = AutoConfig.for_model("bert", vocab_size=64, pad_token_id=0, **dims)
    config._attn_implementation = "eager"
    return cast(BackboneWithHead, TokenStates().build(config, None))


def map_of(network: PreTrainedModel) -> Tensor:
    """The matrix [H, H] of the map in a network."""
    return network.base_model.get_parameter(f"{MODULE}.linear.weight").data


def step_of(states: Tensor, aligned: Tensor) -> TrainingStep:
    def none(*_: Any) -> Any:
        raise AssertionError("there is no companion")

    batch = {ALIGNED: aligned, Field.INPUT_IDS: torch.zeros(states.shape[:2], dtype=torch.long)}
    return TrainingStep(batch, {Signal.HIDDEN_STATES: (states,)}, cast(PreTrainedModel, None), none)


def test_the_loss_is_the_squared_distance_of_aligned_states(generator: torch.Generator) -> None:
    states, aligned = (torch.randn(3, 5, 8, dtype=torch.float64, generator=generator) for _ in range(2))
    aligned[torch.rand(3, 5, generator=generator) < 0.5] = 0
    pairs = [(states[row, at], aligned[row, at]) for row in range(3) for at in range(5) if aligned[row, at].any()]
    expected = sum(float((one - other).square().sum()) for one, other in pairs) / len(pairs)
    (loss,) = MapStates().loss(step_of(states, aligned)).values()
    assert float(loss) == pytest.approx(expected, rel=1e-6)
    assert MapStates().counts({ALIGNED: aligned}, cast(PreTrainedModel, None)) == {"map_states": len(pairs)}
    (nothing,) = MapStates().loss(step_of(states, torch.zeros_like(aligned))).values()
    assert float(nothing) == 0
    with pytest.raises(RecipeError, match="states of this encoder have 8 elements, and those .* 4; give both"):
        MapStates().loss(step_of(states, aligned[..., :4]))


def test_the_map_that_loses_least_is_that_of_least_squares(generator: torch.Generator) -> None:
    states, true = (torch.randn(*shape, generator=generator) for shape in ((1, 200, 6), (6, 6)))
    aligned = states @ true.T + 0.1 * torch.randn(1, 200, 6, generator=generator)
    one = StateMap(6)
    assert torch.equal(one(states), states), "a new map changes nothing"
    optimizer = torch.optim.LBFGS(one.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        (loss,) = MapStates().loss(step_of(one(states), aligned)).values()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    solved = np.linalg.lstsq(states[0].double().numpy(), aligned[0].double().numpy(), rcond=None)[0].T
    assert one.linear.weight.detach().numpy() == pytest.approx(solved, abs=1e-3)


def test_top_states_are_mapped_and_nothing_else_trains() -> None:
    plain, mapped, strategy = network(), network(), StateMapping()
    strategy.add_modules(mapped)
    with torch.no_grad():
        map_of(mapped).copy_(torch.arange(256.0).view(16, 16) / 256)
    batch = {Field.INPUT_IDS: torch.arange(5, 25).view(2, 10)}
    requested = frozenset({Signal.HIDDEN_STATES, Signal.POOLED})
    plain.train(False)
    for one in (mapped, deepcopy(mapped)):
        one.train(False)
        before, after = (TokenStates().signals(each, batch, requested) for each in (plain, one))
        *lower, top = before[Signal.HIDDEN_STATES]
        expected = top @ map_of(one).T
        torch.testing.assert_close(after[Signal.HIDDEN_STATES], (*lower, expected))
        torch.testing.assert_close(after[Signal.POOLED], expected.mean(1))
        torch.testing.assert_close(one.base_model(batch[Field.INPUT_IDS]).last_hidden_state, expected)
    with torch.no_grad():  # a copy has a map of its own
        copied = deepcopy(mapped)
        map_of(copied).zero_()
    assert not copied.base_model(batch[Field.INPUT_IDS]).last_hidden_state.any()
    assert mapped.base_model(batch[Field.INPUT_IDS]).last_hidden_state.any()
    groups = trainable_groups(mapped, [strategy], 1e-2, 0.0)
    assert [name for group in groups for name, _ in group.parameters] == [WEIGHT]
    mapped.train()
    strategy.begin(mapped)
    first, second = (mapped.base_model(batch[Field.INPUT_IDS]).last_hidden_state for _ in range(2))
    assert torch.equal(first, second), "no dropout below the map"
    with pytest.raises(RecipeError, match="state_map: the initial model already has a map"):
        strategy.add_modules(mapped)


class Encoder:
    """A network whose state of a character is its code, and that of several their mean."""

    def __init__(self) -> None:
        self.network, self.files = network(), ()
        self.network.config.hidden_size = 2

    def save(self, folder: Path) -> None:
        raise NotImplementedError

    def states(self, text: TokenizedText) -> np.ndarray:
        assert isinstance(text.text, str)
        means = [np.mean([ord(letter) for letter in text.text[begin:end]]) for begin, end in text.spans]
        return np.asarray([[mean, 1.0] for mean in means], dtype=np.float32)


def annotated(alignment: str | None, text: str = "un chat noir", other: str = "a black cat") -> np.ndarray:
    spans = np.asarray([(0, 2), (3, 5), (5, 7), (8, 12)])
    row = {"text": other, "translation": text, "alignment": alignment}
    annotation = AlignedStates().reading(Encoder(), "0" * 12)
    (channel,) = annotation.channels
    assert channel.shape == (2,)
    (values,) = annotation.annotate(TokenizedText(row, text, "translation", spans, None, "row 7")).values()
    return values


def test_the_first_token_of_an_aligned_word_has_the_state_of_the_other_words_first_letter() -> None:
    values = annotated("0-0 2-1 1-2")
    assert values.tolist() == [[ord("a"), 1], [ord("c"), 1], [0, 0], [ord("b"), 1]]
    several = annotated("0-1 2-1")
    assert several.tolist() == [[0, 0], [(ord("a") + ord("c")) / 2, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("alignment", "says"),
    [
        ("0-0 3-1", "'alignment' has '3-1', which is no pair of words .* of 3 and 3 words, counted from 0"),
        ("0-0 0-3", "'alignment' has '0-3'"),
        ("0:0", "'alignment' has '0:0'"),
        ("", "'alignment' aligns no words; leave out pairs"),
        (None, "the column 'alignment' is missing or empty"),
    ],
)
def test_an_alignment_of_other_words_is_one_sentence_with_its_row(alignment: str | None, says: str) -> None:
    with pytest.raises(DataError, match=f"row 7: .*{says}|row 7: {says}"):
        annotated(alignment)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of each stage, all of which were trained."""
    folder = tmp_path_factory.mktemp("clbt")
    tables = write_family(folder, "tagging")
    texts = documents("json", "argparse", "email")
    rows = {
        "other": [{"text": transcribed(text)} for text in texts],
        "aligned": [
            {"text": text, "translation": translation, "alignment": alignment}
            for document in texts
            for text, translation, alignment in aligned_translations(document)
        ],
    }
    for name, part in rows.items():
        tables[name] = folder / f"{name}.parquet"
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(part), tables[name])
    sources = {
        name: DataSource(digest=f"{number:032x}", path=str(path)) for number, (name, path) in enumerate(tables.items())
    }
    library = library_of(folder, small=RECIPE)
    planned = plan(library.load("small"), library, sources, TaskFamily.model_validate("tagging"))
    folders = {step.fingerprint: folder / step.name for step in planned.steps}
    for step in planned.steps:
        run(job_of(step, folders, tables, folder / step.name, Runtime(log_every=5, checkpoint_every=100)))
    return lambda name: folder / name


def test_the_map_learns_and_the_encoder_below_it_stays(trained: Callable[[str], Path]) -> None:
    losses = [line["train/loss"] for line in read_metrics(trained("mapped") / METRICS) if "train/loss" in line]
    assert losses[-1] < 0.8 * losses[0]
    before, after = (load_file(trained(name) / "model.safetensors") for name in ("other", "mapped"))
    assert not torch.equal(after[WEIGHT], torch.eye(WIDTH))
    shared = after.keys() - {WEIGHT}
    assert all(torch.equal(after[name], before[name]) for name in shared)


def test_the_tagger_of_one_encoder_reads_the_mapped_states_of_the_other(trained: Callable[[str], Path]) -> None:
    mapped, tagger, both = (
        load_file(trained(name) / "model.safetensors") for name in ("mapped", "tagger", "mapped_tagger")
    )
    for name, value in both.items():
        assert torch.equal(value, (mapped if name.startswith("bert.") else tagger)[name]), name
    assert WEIGHT in both and WEIGHT not in tagger
    opened = open_model(trained("mapped_tagger"), "cpu")
    ids = torch.tensor([opened.tokenizer(transcribed("return the value"))["input_ids"]])
    backbone = opened.network.base_model
    top = backbone(ids, output_hidden_states=True).hidden_states[-1]
    map_of(opened.network).copy_(torch.eye(WIDTH))
    unmapped = backbone(ids).last_hidden_state
    torch.testing.assert_close(top, unmapped @ both[WEIGHT].T)
    assert not opened.record.annotations
