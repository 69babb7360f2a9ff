"""Small, untrained models of any task family, saved as a stage saves them."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from pipelines.models.opening import LineRecord, ModelRecord, build_network, open_config, open_tokenizer
from pipelines.parts.heads import Head
from pipelines.task_families import TaskFamily


def save_answering(classifier: Path, out: Path, family: str, head: str, labels: tuple[str, ...]) -> Path:
    """The body and the tokenizer of the folder `classifier` under another head, in the folder `out`."""
    shutil.copytree(classifier, out)
    record = ModelRecord(head=Head.model_validate(head), family=TaskFamily.model_validate(family), labels=labels)
    torch.manual_seed(0)
    build_network(record, open_config(classifier)).save_pretrained(out)
    open_tokenizer(classifier).save_pretrained(out)
    return out


def save_several(classifier: Path, out: Path, lines: dict[str, LineRecord]) -> Path:
    """The body and the tokenizer of the folder `classifier` under the heads of `lines`, in the folder `out`."""
    shutil.copytree(classifier, out)
    first = next(iter(lines.values()))
    record = ModelRecord(head=first.head, family=first.family, labels=first.labels, lines=lines)
    torch.manual_seed(0)
    build_network(record, open_config(classifier)).save_pretrained(out)
    open_tokenizer(classifier).save_pretrained(out)
    return out


def line(task: str, family: str, head: str, labels: tuple[str, ...] = ()) -> LineRecord:
    """A line that answers `task`."""
    return LineRecord(
        head=Head.model_validate(head), family=TaskFamily.model_validate(family), labels=labels, corpus=(task,)
    )
