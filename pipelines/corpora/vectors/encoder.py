"""Encoder: mean-pooled hidden states of a pre-trained Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from pipelines.corpora.vectors import TextVectors
from pipelines.errors import RecipeError
from pipelines.models.untrusted import refuse_unsafe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.corpora.vectors import Encode

_TOKENIZERS = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)


class EncoderVectors(TextVectors, name="encoder"):
    """Last hidden states of a checkpoint, averaged over the tokens of a text (Reimers & Gurevych 2019, §3).

    The checkpoint is any folder that transformers opens as a model with a tokenizer: the one that is to be adapted, or
    one trained for sentence similarity, such as MiniLM.
    """

    paper = "arXiv:1908.10084"
    libraries: ClassVar[tuple[str, ...]] = ("numpy", "torch", "transformers", "tokenizers")
    memory: ClassVar[int] = 1536 * 2**20

    checkpoint: str = Field(min_length=1)
    """Hugging Face model folder; an absolute path, or relative to the checkout."""
    length: int = Field(default=128, ge=8)
    """Tokens of a text that are encoded; the rest is truncated."""
    batch: int = Field(default=32, ge=1)
    """Texts encoded at once."""

    def files(self, root: Path) -> dict[str, Path]:
        folder = root / Path(self.checkpoint).expanduser()
        if not folder.is_dir():
            raise RecipeError(
                f"checkpoint: {folder} is no folder; give a folder with config.json, weights and a tokenizer"
            )
        names = {path.name: path for path in sorted(folder.iterdir()) if path.is_file()}
        if "config.json" not in names:
            raise RecipeError(f"checkpoint: {folder} has no config.json; give the folder of a Hugging Face checkpoint")
        if not any(name.endswith(".safetensors") for name in names):
            raise RecipeError(
                f"checkpoint: {folder} has no weights in safetensors; save the model with save_pretrained"
            )
        if not set(_TOKENIZERS) & set(names):
            raise RecipeError(
                f"checkpoint: {folder} has no tokenizer (one of {', '.join(_TOKENIZERS)}); save the tokenizer there "
                "too: "
                "tokenizer.save_pretrained(folder)"
            )
        refuse_unsafe(folder)
        return names

    def encoder(self, folder: Path, root: Path) -> Encode:
        import numpy as np
        import torch
        from transformers import AutoModel, AutoTokenizer

        from pipelines.models.oversized import refuse_oversized
        from pipelines.networks import register

        register()
        where = root / Path(self.checkpoint).expanduser()
        refuse_unsafe(where)
        local_only: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        refuse_oversized(where)
        tokenizer = AutoTokenizer.from_pretrained(where, **local_only)
        network, loaded = AutoModel.from_pretrained(where, use_safetensors=True, output_loading_info=True, **local_only)
        if missing := sorted(name for name in loaded["missing_keys"] if "pooler" not in name):
            raise RecipeError(f"checkpoint: {where} has no weights for {missing[0]}; give a complete checkpoint")
        network.eval()
        torch.set_num_threads(1)

        def encode(texts: Sequence[str]) -> NDArray[np.float32]:
            parts = []
            for begin in range(0, len(texts), self.batch):
                tokens = tokenizer(
                    list(texts[begin : begin + self.batch]),
                    truncation=True,
                    max_length=self.length,
                    padding=True,
                    return_tensors="pt",
                )
                with torch.inference_mode():
                    states = network(**tokens).last_hidden_state
                mask = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
                mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
                parts.append(torch.nn.functional.normalize(mean.float(), dim=-1).numpy())
            return np.concatenate(parts) if parts else np.zeros((0, network.config.hidden_size), np.float32)

        return encode
