"""A checkpoint made to harm: whatever opens it must refuse it, and nothing of it may have run."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.corpora.vectors.encoder import EncoderVectors
from pipelines.errors import DataError, RecipeError
from pipelines.models.opening import open_config, open_tokenizer
from pipelines.models.untrusted import refuse_unsafe, safetensors_header
from pipelines.recipe.checkpoint import backbone_of, resolve_checkpoint
from pipelines.serving.answering.inference import open_compute

BERT: dict[str, Any] = {
    "model_type": "bert", "vocab_size": 40, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 8, "max_position_embeddings": 64,
}  # fmt: skip
MODULE = "import os\nos.mkdir({marker!r})\nclass Mine: pass\n"


class Harmful:
    """What unpickling runs: a marker is left."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return (os.mkdir, (str(self.marker),))


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "harmed"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small checkpoint without fault."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(BERT))
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordLevel", "vocab": {"a": 0}}}))
    tables = {"word": 40, "position": 64}
    save_file(
        {
            f"embeddings.{name}_embeddings.weight": np.zeros((rows, 8), dtype=np.float32)
            for name, rows in tables.items()
        },
        folder / "model.safetensors",
    )
    return folder


def test_the_marker_would_be_left_by_unpickling(marker: Path) -> None:
    pickle.loads(pickle.dumps(Harmful(marker)))
    assert marker.exists(), "the test below would pass on a harmless file"


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "model.pt", "weights.CKPT", "vocab.pkl", "training_args.bin", "deep/er/state.pth"]
)
@pytest.mark.parametrize("beside", [True, False], ids=["beside safetensors", "alone"])
def test_a_pickle_is_refused_by_everything_that_opens_a_folder(
    name: str, beside: bool, folder: Path, marker: Path
) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(pickle.dumps(Harmful(marker)))
    if not beside:
        (folder / "model.safetensors").unlink()
    reason = r"a pickle, which can execute code when it is read; only safetensors are read"
    for opens in (resolve_checkpoint, backbone_of):
        with pytest.raises(RecipeError, match=reason):
            opens(str(folder))
    if beside:
        with pytest.raises(RecipeError, match=reason):
            EncoderVectors(checkpoint=str(folder)).encoder(folder, folder.parent)
    answer = CliRunner().invoke(app, ["predict", "--model", str(folder), "a text"])
    assert answer.exit_code == 2 and name in answer.stderr and "a pickle" in answer.stderr
    assert not marker.exists()


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "processor_config.json"])
def test_code_that_a_configuration_asks_for_is_refused(file: str, folder: Path, marker: Path) -> None:
    (folder / "mine.py").write_text(MODULE.format(marker=str(marker)))
    before = json.loads((folder / file).read_text()) if (folder / file).exists() else {}
    asked = {"AutoConfig": "mine.Mine", "AutoModel": "mine.Mine", "AutoTokenizer": ["mine.Mine", None]}
    (folder / file).write_text(json.dumps({**before, "model_type": "mine", "auto_map": asked}))
    with pytest.raises(
        RecipeError, match=rf"{file}: 'auto_map' refers to code that came with the model .*never executed"
    ):
        resolve_checkpoint(str(folder))
    # and where the folder is opened without having been looked through: transformers asks nobody, and runs nothing
    for opens in (open_config, open_tokenizer):
        with suppress(RecipeError):
            opens(folder)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("shard", "says"),
    [
        ("../outside.safetensors", "refers to the shard '../outside.safetensors', which is not in"),
        ("/etc/passwd", "refers to the shard '/etc/passwd', which is not in"),
        ("..\\outside.safetensors", "which is not in"),
        ("part-1.bin", "refers to the shard 'part-1.bin'; only safetensors are read"),
    ],
)
def test_an_index_that_points_elsewhere_is_refused(shard: str, says: str, folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a.weight": shard}}))
    with pytest.raises(RecipeError) as refused:
        resolve_checkpoint(str(folder))
    assert says in str(refused.value)


def test_a_link_out_of_the_folder_is_refused_and_the_cache_of_the_hub_is_not(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    (folder / "special_tokens_map.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(RecipeError, match=r"special_tokens_map.json: this link leaves .*theirs for .*secret.json"):
        refuse_unsafe(folder)
    (folder / "special_tokens_map.json").unlink()
    (folder / "same.json").symlink_to(folder / "config.json")
    refuse_unsafe(folder)
    snapshot, blobs = tmp_path / "models--x" / "snapshots" / "1", tmp_path / "models--x" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "config").write_text("{}")
    (snapshot / "config.json").symlink_to(Path("..", "..", "blobs", "config"))
    refuse_unsafe(snapshot)
    (snapshot / "other.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(RecipeError, match="other.json: this link leaves"):
        refuse_unsafe(snapshot)


@pytest.mark.parametrize("length", [2**63, 2**40, 99_999_999, 1_000])
def test_a_header_longer_than_its_file_is_refused_without_making_room_for_it(length: int, folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(length.to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match=f"its header claims {length:,} bytes, the file has 10"):
        safetensors_header(folder / "model.safetensors")
    with pytest.raises(RecipeError, match="is damaged or not a safetensors file"):
        backbone_of(str(folder))


def test_json_that_is_nested_without_end_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text("[" * 200_000)
    with pytest.raises(RecipeError, match="config.json: not readable as JSON"):
        resolve_checkpoint(str(folder))


def test_a_package_that_holds_a_checkpoint_is_found_and_not_imported(
    folder: Path, tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "theirs_packed"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(MODULE.format(marker=str(marker)))
    os.rename(folder, package / "model")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert resolve_checkpoint("package:theirs_packed/model") == package / "model"
    assert not marker.exists()
    for reference in ("package:theirs_packed/../secret", "package:theirs_packed.model/x", "package:../x/y"):
        with pytest.raises(RecipeError, match="expected package:name/sub/folder"):
            resolve_checkpoint(reference)


def test_an_onnx_model_reads_nothing_outside_its_folder(folder: Path, tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    (tmp_path / "secret.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    place = weights.external_data.add()
    place.key, place.value = "location", "../secret.bin"
    row = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "logits")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["logits"])], "sum", row[:1], row[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(DataError, match="cannot read it .*escapes model directory"):
        open_compute(folder, 1)
    assert onnx.load(folder / "model.onnx", load_external_data=False).graph.initializer[0].name == "w"
