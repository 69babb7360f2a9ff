"""Whether a model folder opens in plain transformers: it is opened, by a process that has none of this code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pipelines.networks.folder import read_json

PATIENCE = 300
"""Seconds that opening a model may take."""
OPEN = """
import importlib.util, json, sys
folder, name = sys.argv[1:]
import transformers
from transformers.utils import logging
logging.set_verbosity_error()
model, loaded = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
print(json.dumps({
    "complete": not loaded["missing_keys"] and not loaded["mismatched_keys"] and not loaded["unexpected_keys"],
    "tokens": len(tokenizer),
}))
"""
AUTO = {
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForTokenClassification": "AutoModelForTokenClassification",
    "ForQuestionAnswering": "AutoModelForQuestionAnswering",
    "ForMultipleChoice": "AutoModelForMultipleChoice",
    "ForMaskedLM": "AutoModelForMaskedLM",
    "ForPreTraining": "AutoModelForPreTraining",
    "LMHeadModel": "AutoModelForCausalLM",
    "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
}
"""End of an architecture's name → the class of transformers that opens it."""


@dataclass(frozen=True)
class PlainOpening:
    """The class of transformers that opens a folder."""

    name: str
    complete: bool
    """Whether it has all of the folder's weights and no others; else it has the backbone alone."""


def opens_in_transformers(folder: Path) -> PlainOpening | None:
    """How transformers alone opens `folder`: with its head, or its backbone alone; None where it cannot, or takes more
    than `PATIENCE` seconds."""
    if not any(folder.glob("*.safetensors")):
        return None
    named = str((read_json(folder / "config.json").get("architectures") or [""])[0])
    auto = next((auto for end, auto in AUTO.items() if named.endswith(end)), None)
    for name in dict.fromkeys(one for one in (auto, "AutoModel") if one is not None):
        # -I: no folder and no variable of this process leads to this code
        command = [sys.executable, "-I", "-c", OPEN, str(folder.resolve()), name]
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env={**os.environ, "HF_HUB_OFFLINE": "1"},  # an upload follows, but what is opened is all here
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            continue
        if done.returncode == 0:
            complete = bool(json.loads(done.stdout.splitlines()[-1])["complete"])
            if complete or name == "AutoModel":
                return PlainOpening(name, complete)
    return None
