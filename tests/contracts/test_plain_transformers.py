"""What a stage saves opens without this project: transformers alone finds the backbone's weights and the tokenizer."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModel

from pipelines.networks import register
from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones import Backbone
from pipelines.recipe.kinds import Kind
from tests.contracts.trials import stages, tried

OPEN = """
import json, sys
sys.modules.update(dict.fromkeys(("pipelines", "tasks", "flows", "tests")))  # to import one is an error
import torch
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging
logging.set_verbosity_error()
said = {}
for folder in sys.argv[1:]:
    model, unmatched = AutoModel.from_pretrained(folder, output_loading_info=True)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("Return the eigenvalues of a matrix.", return_tensors="pt")["input_ids"]
    more = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        state = model.eval()(input_ids=ids, **more).last_hidden_state
    said[folder] = {
        "type": model.config.model_type,
        "missing": sorted(unmatched["missing_keys"]),
        "mismatched": sorted(map(str, unmatched["mismatched_keys"])),
        "finite": bool(torch.isfinite(state).all()),
        "tokens": len(tokenizer),
        "rows": model.get_input_embeddings().num_embeddings,
    }
print(json.dumps(said))
"""
POOLED = ("pooler.dense.weight", "pooler.dense.bias")
"""What BERT's own class adds on top, for a task that these recipes do not have."""


def is_of_ours(body: Backbone) -> bool:
    """Whether the network of `body` is one of this project, which transformers alone does not know."""
    architecture = getattr(body, "architecture", None)
    return not isinstance(architecture, Architecture) or type(architecture).register is not Architecture.register


def firsts(own: bool) -> dict[str, str]:
    """`body kind` → the first stage that trains such a body; our own bodies, or those of transformers."""
    found: dict[str, str] = {}
    for name, stage in stages().items():
        if stage.backbone is None or not stage.trains or stage.kind not in (Kind.PRETRAIN, Kind.FINETUNE):
            continue
        if is_of_ours(stage.backbone) is own:
            found.setdefault(f"{stage.backbone.label} {stage.kind}", name)
    return found


THEIRS, OURS = firsts(own=False), firsts(own=True)


@cache
def opened() -> dict[str, Any]:
    """What one process without our code says of every folder."""
    folders = [str(tried(name).folder) for name in THEIRS.values()]
    # -I: no folder and no variable of this process leads there
    command = [sys.executable, "-I", "-c", OPEN, *folders]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


@pytest.mark.parametrize("kind", THEIRS)
def test_it_opens_without_our_code(kind: str) -> None:
    said = opened()[str(tried(THEIRS[kind]).folder)]
    assert said["type"] == kind.split()[1]
    assert set(said["missing"]) <= set(POOLED) and not said["mismatched"]
    assert said["finite"] and said["tokens"] <= said["rows"]


def test_every_architecture_is_tried_before_and_after_labels() -> None:
    architectures = {kind.split()[1] for kind in THEIRS}
    assert {f"transformer {one} {when}" for one in architectures for when in ("pretrain", "finetune")} == set(THEIRS)
    assert {"bert", "roberta", "electra", "gpt2", "xlnet", "t5"} <= architectures


@pytest.mark.parametrize("kind", OURS)
def test_a_body_of_ours_opens_by_the_auto_class_once_it_is_known(kind: str) -> None:
    register()
    folder: Path = tried(OURS[kind]).folder
    body, unmatched = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert body.config.model_type == kind.split()[-2]
    assert set(unmatched["missing_keys"]) <= set(POOLED) and not unmatched["mismatched_keys"]
