"""Networks that say one array of each text: what a runtime can serve, and the stand-in of one that it serves.

open_text_network(folder)(input_ids, attention_mask)      # scores [B, C], or the vector [B, H] of a bare encoder
ServedNetwork(compute)                                    # under a head, in place of the network that was converted
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import DataError
from pipelines.models.classifier import load_classifier, load_foreign, refuse_unfit
from pipelines.models.opening import RECORD
from pipelines.networks.folder import read_json
from pipelines.networks.text_encoder import LONGEST
from pipelines.parts.heads import Head
from pipelines.parts.heads.pooled_text import PAIR, PooledText
from pipelines.task_families import TaskFamily

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from pipelines.networks.sequence_classifier import Classified
    from pipelines.serving.runtimes import Compute

CLASSIFIER = "ForSequenceClassification"
"""How transformers ends the name of an architecture that scores a text."""


class Output(StrEnum):
    """What a network says of a text."""

    CLASSES = "classes"
    """[B, C] scores of exclusive classes."""
    SCORE = "score"
    """[B, 1] a number."""
    VECTOR = "vector"
    """[B, H] the mean of the last hidden states over the tokens (Reimers & Gurevych 2019, §3)."""


def output_of(folder: Path) -> Output:
    """What the model in `folder` says of a text. Raises DataError, with the reason, for one that says no single array."""
    config = read_json(folder / "config.json")
    noted = config.get(RECORD)
    if noted is not None and noted.get("family") is not None:
        head = Head.model_validate(noted["head"])
        if not isinstance(head, PooledText):
            raise DataError(
                f"{folder}: its head ({head.name}) does not answer a text with one array, which is all that a runtime "
                "computes; serve it with `cursus predict`"
            )
        return Output.CLASSES if len(noted.get("labels", ())) > 1 else Output.SCORE
    if config.get("is_encoder_decoder"):
        raise DataError(f"{folder}: an encoder with a decoder, which writes and has no one array for a text")
    named = config.get("architectures") or ()
    if noted is None and (named[0].endswith(CLASSIFIER) if named else config.get("id2label")):
        return Output.CLASSES if len(config.get("id2label") or (0, 1)) > 1 else Output.SCORE
    return Output.VECTOR


def inputs_of(folder: Path) -> tuple[str, ...]:
    """The arguments of the network in `folder`, in order: which text a token is of is told where examples are pairs."""
    config = read_json(folder / "config.json")
    family = (config.get(RECORD) or {}).get("family")
    pairs = family is not None and set(PAIR) <= set(TaskFamily.model_validate(family).columns)
    tells = pairs and int(config.get("type_vocab_size") or 0) > 1
    return ("input_ids", "attention_mask", *(["token_type_ids"] if tells else []))


def orders_of(folder: Path) -> int:
    """Rows that make one example: two where a pair is read in both orders."""
    return int(read_json(folder / "config.json").get("classifier_orders") or 1)


def longest_of(folder: Path) -> int:
    """Tokens of the longest row that the network in `folder` takes."""
    return int(read_json(folder / "config.json").get("max_position_embeddings") or LONGEST)


def open_text_network(folder: Path) -> Module:
    """The network in `folder`, float32, evaluation mode; its arguments are those of `inputs_of`, int64 [B, L].

    Raises DataError for a folder whose model says no single array of a text, or whose weights do not fit.
    """
    import torch

    from pipelines.networks.sequence_classifier import pool

    vector = output_of(folder) is Output.VECTOR
    network: Any = _open_encoder(folder) if vector else load_classifier(folder)

    class TextNetwork(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
            inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
            if token_type_ids is not None:
                inputs["token_type_ids"] = token_type_ids
            said = self.network(**inputs)
            if vector:
                return pool(said.last_hidden_state.float(), attention_mask, "mean")
            scores: Tensor = said.logits
            return scores

    return TextNetwork().requires_grad_(False).eval()


def _open_encoder(folder: Path) -> Any:
    from transformers import AutoModel

    from pipelines.networks import register

    register()
    network, loading = load_foreign(AutoModel, folder, "an encoder")
    # a mean over tokens does not ask the pooler, and a head that trained on plain text stays behind
    refuse_unfit(
        folder,
        {"missing_keys": [key for key in loading["missing_keys"] if "pooler" not in key]}
        | {"mismatched_keys": loading["mismatched_keys"]},
    )
    return network


class ServedNetwork:
    """Stands under a head that reads one vector of a row, in place of the network that `compute` was converted from."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute

    def __call__(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> Classified:
        import torch

        from pipelines.networks.sequence_classifier import Classified

        types = None if token_type_ids is None else token_type_ids.numpy()
        return Classified(logits=torch.from_numpy(self._compute(input_ids.numpy(), attention_mask.numpy(), types)))
