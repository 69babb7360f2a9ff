"""One task of a model of several, as an ordinary model folder: the backbone with that task's head."""

from __future__ import annotations

from pathlib import Path

from pipelines.errors import RecipeError
from pipelines.models.features import save_feature_tokenizers
from pipelines.models.opening import (
    CONFIG_KEY,
    LineRecord,
    ModelRecord,
    build_network,
    open_config,
    open_feature_tokenizers,
    open_tokenizer,
)
from pipelines.models.text_states import copy_models
from pipelines.models.weights import read_weights
from pipelines.networks.folder import read_json
from pipelines.parts.architectures import Architecture


def record_of_lines(folder: Path) -> ModelRecord | None:
    """The record of a model of several lines; None for any other folder. Reads JSON only."""
    path = folder / "config.json"
    recorded = (read_json(path).get(CONFIG_KEY) or {}) if path.is_file() else {}
    return ModelRecord.model_validate(recorded) if recorded.get("lines") else None


def answering_lines(folder: Path) -> dict[str, LineRecord]:
    """Line → its record, of the lines that answer a task; empty for a folder with a single head. Reads JSON only."""
    record = record_of_lines(folder)
    return {name: line for name, line in record.lines.items() if line.family is not None} if record else {}


def answers_several(folder: Path) -> bool:
    """Whether the model in `folder` answers several tasks, so that one of them has to be named."""
    return len(answering_lines(folder)) > 1


def extract_task(folder: Path, task: str | None, out: Path) -> Path:
    """Write the model of `task`, a line's name or its corpus, into `out`; returns `folder` itself if it has one head.

    Raises RecipeError where no or several lines match, or the weights are not those of the record.
    """
    record = record_of_lines(folder)
    line = None if record is None else record.line_for(task, folder)
    if record is None or line is None:
        return folder
    from transformers.utils import logging

    logging.disable_progress_bar()
    prefix = f"heads.{line}_head." if record.several_heads else ""
    network = build_network(record.of_line(line), open_config(folder))
    weights = {
        name.removeprefix(prefix): value
        for name, value in read_weights(folder).items()
        if name.startswith(prefix) or not name.startswith("heads.")
    }
    if architecture := Architecture.of(network.config):
        # the pooler of another line
        poolers = tuple(f"{network.base_model_prefix}.{module}." for module in architecture.pooler)
        known = set(network.state_dict())
        weights = {name: value for name, value in weights.items() if name in known or not name.startswith(poolers)}
    tied = set(getattr(network, "all_tied_weights_keys", None) or {})
    if mismatched := sorted((set(network.state_dict()) - tied) ^ (set(weights) - tied)):
        raise RecipeError(
            f"{folder}: the weights of line {line!r} do not match its record; the first mismatch is {mismatched[0]}"
        )
    network.load_state_dict(weights, strict=False)
    network.tie_weights()
    network.eval()
    network.config._attn_implementation = None
    tokenizer = open_tokenizer(folder)
    network.save_pretrained(out)
    tokenizer.save_pretrained(out)
    save_feature_tokenizers(open_feature_tokenizers(folder, network.config), out)
    copy_models(record.of_line(line).annotations, folder, out)
    return out
