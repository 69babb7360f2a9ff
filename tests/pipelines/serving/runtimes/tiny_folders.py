"""Model folders made of a small classifier: of pairs, and of its body alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from transformers import AutoModel

from pipelines.models.opening import ModelRecord, build_network, open_config
from pipelines.parts.heads import Head
from pipelines.task_families import TaskFamily

TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def of_pairs(classifier: Path, out: Path, family: str, head: dict[str, object]) -> Path:
    """An untrained model of pairs with weights large enough that its answers differ, and a tokenizer of two texts."""
    labels = ("other", "same") if family == "pair_classification" else ()
    record = ModelRecord(head=Head.model_validate(head), family=TaskFamily.model_validate(family), labels=labels)
    torch.manual_seed(1)
    config = open_config(classifier)
    config.architectures = config.problem_type = None
    build_network(record, config).save_pretrained(out)
    for name in TOKENIZER:
        shutil.copyfile(classifier / name, out / name)
    settings = json.loads((out / "tokenizer_config.json").read_text())
    settings["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
    (out / "tokenizer_config.json").write_text(json.dumps(settings))
    tokens = json.loads((out / "tokenizer.json").read_text())
    sequences = [{"Sequence": {"id": name, "type_id": number}} for number, name in enumerate("AB")]
    separators = [{"SpecialToken": {"id": "[SEP]", "type_id": number}} for number in range(2)]
    first = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
    tokens["post_processor"]["pair"] = [first, sequences[0], separators[0], sequences[1], separators[1]]
    (out / "tokenizer.json").write_text(json.dumps(tokens))
    return out


def bare_encoder(classifier: Path, out: Path) -> Path:
    """The body of the classifier, as transformers saves it."""
    AutoModel.from_pretrained(classifier, trust_remote_code=False).save_pretrained(out)
    for name in TOKENIZER:
        shutil.copyfile(classifier / name, out / name)
    return out
