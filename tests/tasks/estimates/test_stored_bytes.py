"""Expected bytes of smaller models against those of the files that they are saved in."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification

from pipelines.lineage.provenance import DataSource
from pipelines.parts.compressions import Compression
from tasks.estimates.stored_bytes import expected_bytes, saved_size
from tests.pipelines.recipe.recipe_texts import labelled
from tests.steps import library_of, plan_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier whose layers are most of it."""
    out = tmp_path_factory.mktemp("model")
    config = BertConfig(
        vocab_size=500, hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=256
    )
    BertForSequenceClassification(config).save_pretrained(out)
    return out


def test_the_parts_add_up_to_the_file(folder: Path) -> None:
    size = saved_size(folder)
    assert size.total == pytest.approx((folder / "model.safetensors").stat().st_size, rel=0.02)
    assert size.feed_forward == 4 * 4 * (2 * 64 * 256 + 256 + 64), "both matrices and their biases"
    assert size.embeddings > 4 * 64 * 500 and size.rest > 0


@pytest.mark.parametrize(
    ("compression", "tolerance"),
    [
        ({"name": "select_layers", "share": 0.5}, 0.02),
        ({"name": "feed_forward_widths", "share": 0.25}, 0.02),
        ({"name": "group_quantization", "bits": 8, "groups": 16}, 0.1),
        ({"name": "group_quantization", "bits": 4, "groups": 16}, 0.15),
    ],
)
def test_what_a_compression_leaves_is_expected(
    compression: dict[str, object], tolerance: float, folder: Path, tmp_path: Path
) -> None:
    made = Compression.model_validate(compression)
    network = AutoModelForSequenceClassification.from_pretrained(folder)
    made.shrink(network).network.save_pretrained(tmp_path)
    actual = (tmp_path / "model.safetensors").stat().st_size
    assert made.size_after(saved_size(folder)).total == pytest.approx(actual, rel=tolerance)


@pytest.mark.parametrize(("embeddings", "share"), [("8", 8 / 32), ("null", 1.0)])
def test_trained_bits_are_expected_with_the_embeddings_of_the_training(
    embeddings: str, share: float, folder: Path, sources: dict[str, DataSource], tmp_path: Path
) -> None:
    task = "kind: compress, corpus: task, head: sequence_classification, "
    rounded = (
        f"  rounded: {{{task}start: answer, objective: cross_entropy, strategy: full, "
        f"budget: {{epochs: 1, length: 64}}, "
        f"compression: {{name: rounded_training, bits: 2, embedding_bits: {embeddings}}}}}"
    )
    tuned = "  tuned: {like: answer, start: rounded}"
    packed = f"  packed: {{{task}start: tuned, compression: {{name: integer_codes, bits: trained}}}}"
    plan = plan_of(library_of(tmp_path, meeting=labelled(rounded, tuned, packed)), "meeting", sources)
    steps = {step.fingerprint: step for step in plan.steps}
    names = {step.name: step.fingerprint for step in plan.steps}
    size = saved_size(folder)
    expected = share * size.embeddings + 2 / 32 * (size.attention + size.feed_forward) + size.rest
    other = (folder / "config.json").stat().st_size
    for finished in ("answer", "rounded", "tuned"):
        actual = expected_bytes(steps[names["packed"]], steps, {names[finished]: folder})
        assert actual == pytest.approx(expected + other), f"{finished} is finished"
