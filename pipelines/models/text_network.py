"""Networks with one output array per text, which runtimes can serve, and the adapter that puts a served one under a
head.

open_text_network(folder)(input_ids, attention_mask)      # scores [B, C], or the vector [B, H] of a bare encoder
ServedNetwork(compute)                                    # under a head, in place of the original network
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import DataError
from pipelines.models.classifier import load_classifier, load_pretrained, refuse_mismatched_weights
from pipelines.models.opening import CONFIG_KEY, open_lines
from pipelines.networks.folder import read_json
from pipelines.networks.text_encoder import LONGEST
from pipelines.parts.heads import Head
from pipelines.parts.heads.pooled_text import PAIR, PooledTextHead
from pipelines.task_families import TaskFamily
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from pipelines.networks.sequence_classifier import ClassificationOutput
    from pipelines.serving.runtimes import Compute

CLASSIFIER = "ForSequenceClassification"
"""Suffix of transformers' architectures that score a text."""


class OutputKind(StrEnum):
    """Kind of a network's output for a text."""

    CLASSES = "classes"
    """[B, C] scores of exclusive classes."""
    LABELS = "labels"
    """[B, C] scores of labels that do not exclude each other."""
    SCORE = "score"
    """[B, 1] a number."""
    VECTOR = "vector"
    """[B, H] the mean of the last hidden states over the tokens (Reimers & Gurevych 2019, §3)."""


def needs_its_head(folder: Path) -> bool:
    """Whether only its head computes the class logits of the model in `folder`: the network reads channels or an
    attention pattern, or the head calls it in a way of its own. Runtimes pass on tokens and their mask alone."""
    record = read_json(folder / "config.json").get(CONFIG_KEY) or {}
    if record.get("embeddings") or record.get("attention") is not None:
        return True
    if record.get("family") is None:
        return False
    head = Head.model_validate(record["head"])
    served = isinstance(head, PooledTextHead) and not head.skips_layers
    return not served and Signal.LOGITS in head.answers_from


def output_kind(folder: Path) -> OutputKind:
    """Kind of output of the model in `folder`. DataError, with the reason, if it has no single output array per
    text."""
    config = read_json(folder / "config.json")
    record = config.get(CONFIG_KEY)
    if record is not None and (embeddings := record.get("embeddings")):
        read = ", ".join(one["name"] for one in embeddings)
        raise DataError(
            f"{folder}: its backbone reads channels alongside the tokens ({read}), which runtimes do not pass on; "
            "serve it with `cursus predict`"
        )
    if record is not None and record.get("attention") is not None:
        pattern = record["attention"]["name"]
        raise DataError(
            f"{folder}: it was trained with attention: {pattern}, and runtimes read tokens and their mask alone; serve "
            "it with `cursus predict`"
        )
    if record is not None and record.get("family") is not None:
        head = Head.model_validate(record["head"])
        if not isinstance(head, PooledTextHead):
            raise DataError(
                f"{folder}: its head ({head.name}) does not return a single array per text, which runtimes require; "
                "serve it with `cursus predict`"
            )
        if head.skips_layers:
            raise DataError(
                f"{folder}: its head ({head.name}) leaves out layers for texts that it is sure of, and runtimes "
                "compute all layers; serve it with `cursus predict`"
            )
        if len(record.get("labels", ())) < 2:
            return OutputKind.SCORE
        return OutputKind.CLASSES if Signal.LOGITS in head.answers_from else OutputKind.LABELS
    if config.get("is_encoder_decoder"):
        raise DataError(
            f"{folder}: an encoder-decoder model generates text and has no single output array; serve it with `cursus "
            "predict`"
        )
    architectures = config.get("architectures") or ()
    if record is None and (architectures[0].endswith(CLASSIFIER) if architectures else config.get("id2label")):
        return OutputKind.CLASSES if len(config.get("id2label") or (0, 1)) > 1 else OutputKind.SCORE
    return OutputKind.VECTOR


def input_names(folder: Path) -> tuple[str, ...]:
    """Argument names of the network in `folder`, in order; token_type_ids only if examples are pairs."""
    config = read_json(folder / "config.json")
    family = (config.get(CONFIG_KEY) or {}).get("family")
    pairs = family is not None and set(PAIR) <= set(TaskFamily.model_validate(family).columns)
    has_types = pairs and int(config.get("type_vocab_size") or 0) > 1
    return ("input_ids", "attention_mask", *(["token_type_ids"] if has_types else []))


def rows_per_example(folder: Path) -> int:
    """Rows per example: two if a pair is read in both orders."""
    return int(read_json(folder / "config.json").get("classifier_orders") or 1)


def max_row_length(folder: Path) -> int:
    """Maximum row length in tokens of the network in `folder`."""
    return int(read_json(folder / "config.json").get("max_position_embeddings") or LONGEST)


def open_text_network(folder: Path) -> Module:
    """Load the network in `folder`, float32, evaluation mode; its arguments are those of `input_names`, int64 [B, L].

    DataError for a model without a single output array per text, or with weights that do not match.
    """
    import torch

    from pipelines.networks.sequence_classifier import pool

    vector = output_kind(folder) is OutputKind.VECTOR
    network: Any = _open_encoder(folder) if vector else load_classifier(folder)

    class TextNetwork(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
            inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
            if token_type_ids is not None:
                inputs["token_type_ids"] = token_type_ids
            outputs = self.network(**inputs)
            if vector:
                return pool(outputs.last_hidden_state.float(), attention_mask, "mean")
            scores: Tensor = outputs.logits
            return scores

    return TextNetwork().requires_grad_(False).eval()


def _open_encoder(folder: Path) -> Any:
    from transformers import AutoModel

    from pipelines.networks import register

    # only the record can build what a compression has changed
    if (read_json(folder / "config.json").get(CONFIG_KEY) or {}).get("changes"):
        return open_lines(folder, "cpu").network.base_model
    register()
    network, loading = load_pretrained(AutoModel, folder, "an encoder")
    # mean pooling does not use the pooler, and a pre-training head is not loaded
    refuse_mismatched_weights(
        folder,
        {"missing_keys": [key for key in loading["missing_keys"] if "pooler" not in key]}
        | {"mismatched_keys": loading["mismatched_keys"]},
    )
    return network


class ServedNetwork:
    """Adapter that lets a head call `compute`, a converted network, in place of the original network."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute

    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> ClassificationOutput:
        import torch

        from pipelines.networks.sequence_classifier import ClassificationOutput

        types = None if token_type_ids is None else token_type_ids.numpy()
        return ClassificationOutput(
            logits=torch.from_numpy(self._compute(input_ids.numpy(), attention_mask.numpy(), types))
        )
