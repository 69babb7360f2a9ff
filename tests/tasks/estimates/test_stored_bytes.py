"""Expected bytes of smaller models against those of the files that they are saved in."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification

from pipelines.parts.compressions import Compression
from tasks.estimates.stored_bytes import saved_size


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
