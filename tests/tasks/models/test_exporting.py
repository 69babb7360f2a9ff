"""What `cursus export` finds behind a name: float32 weights, and the texts of the model's lineage."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.errors import DataError
from pipelines.lineage.provenance import DataSource
from pipelines.models.classifier import load_classifier
from pipelines.parts.compressions.dynamic_int8 import DynamicInt8
from pipelines.serving.exported import Export
from tasks.models.exporting import material_of, source_of
from tests.tasks.answering_folders import save_answering
from tests.tasks.conftest import LABELS, TEXTS, Builder


@pytest.fixture(scope="module")
def answering(classifier_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answering") / "model"
    return save_answering(classifier_folder, folder, "text_classification", "sequence_classification", tuple(LABELS))


def labelled(builder: Builder, name: str) -> DataSource:
    source = builder.table(name, TEXTS * 4)
    columns = {"text": TEXTS * 4, "label": LABELS * 4}
    pyarrow.parquet.write_table(pyarrow.table(columns), builder.root / source.path)
    from pipelines.corpora.shards.digests import dvc_digest

    return DataSource(digest=dvc_digest(builder.root / source.path), path=source.path)


def test_an_eight_bit_model_is_exported_from_what_it_was_converted_from_and_scored(
    root: Path, answering: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURSUS_ROOT", str(root))
    builder = Builder(root, answering)
    train = labelled(builder, "train")
    labelled(builder, "test")
    small = builder.step("small", "compress", data={"train": train})
    DynamicInt8(least_cosine=0.1).convert(answering, load_classifier(answering), tmp_path / "int8")
    int8 = Builder(root, tmp_path / "int8").step("int8", "compress", parents={"start": small.fingerprint})
    source = source_of(root, int8.fingerprint[:12], None, root)
    assert (source.folder, source.fingerprint) == (small.folder, small.fingerprint)
    command = ["export", int8.fingerprint, "--to", str(tmp_path / "out"), "--only", "torch_fp32", "--rounds", "1"]
    said = CliRunner().invoke(app, command)
    assert said.exit_code == 0, said.output
    assert "chosen torch_fp32" in said.stdout and "macro_f1" in said.stdout
    record = Export.read(tmp_path / "out")
    assert record.source == small.fingerprint
    assert record.checked["from"] == "the test table of docs, 12 of them scored"
    assert record.checked["metric"] == "macro_f1"
    assert 0 <= (record.measured["torch_fp32"].score or 0) <= 1
    # the tables are no longer those that the model was trained with
    pyarrow.parquet.write_table(pyarrow.table({"text": ["x"], "label": LABELS[:1]}), root / train.path)
    with pytest.raises(DataError, match="no table of its lineage exists any more.*--texts FILE"):
        material_of(root, source, None)


def test_texts_are_lines_or_the_columns_of_a_family(
    root: Path, answering: Path, classifier_folder: Path, tmp_path: Path
) -> None:
    lines = tmp_path / "texts"
    lines.write_text("\n".join(TEXTS) + "\n\n", encoding="utf-8")
    found = material_of(root, source_of(root, str(answering), None, tmp_path), lines)
    assert len(found.checked) == len(found.calibration) == 3
    assert all(ids.shape == mask.shape and mask.all() for ids, mask, _ in found.checked), "no padding"
    pairs = save_answering(
        classifier_folder, tmp_path / "pairs", "pair_classification", "sequence_classification", ("no", "yes")
    )
    lines.write_text(json.dumps({"text_a": TEXTS[0], "text_b": TEXTS[1]}) + "\n", encoding="utf-8")
    assert len(material_of(root, source_of(root, str(pairs), None, tmp_path), lines).checked) == 1
    apart = json.dumps({"text_a": "one\u2028line", "text_b": TEXTS[1]}, ensure_ascii=False)
    lines.write_text(f"\n{apart}\n\nonly words\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"{lines}:4: not JSON"):
        material_of(root, source_of(root, str(pairs), None, tmp_path), lines)
    with pytest.raises(DataError, match="cannot be read as text"):
        material_of(root, source_of(root, str(pairs), None, tmp_path), tmp_path / "absent")
