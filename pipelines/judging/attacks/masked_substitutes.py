"""Substitutes from a masked language model and from vectors (Jiao et al. 2019, TinyBERT §3.2 and algorithm 1)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from pydantic import Field

from pipelines.judging.attacks import ModelAttack
from pipelines.judging.attacks.letters import ALPHABETIC, WORD, like
from pipelines.vocabulary import Field as BatchField
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from numpy.random import Generator
    from torch import Tensor, nn

    from pipelines.models.opening import OpenedModel

ROWS = 64
"""Masked copies of a text that are read at a time."""
TEXTS = 20_000
"""Texts whose candidates are kept: they are the same in every epoch."""


class MaskedSubstitutes(ModelAttack, name="masked_substitutes"):
    """A word of one token is replaced by one of the words that a masked language model finds most probable in its
    place, a word of several by one of those with the nearest vectors.

    The model is that of another stage, `from: <stage>`, whose head predicts masked tokens. The vectors are those of its
    own input, of a word of several tokens their mean; the paper has GloVe's. With as many epochs an example becomes so
    many others (20 in the paper, at a rate of 0.4).
    """

    paper = "arXiv:1909.10351"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC

    candidates: int = Field(15, ge=1, le=1000)
    """Number K of most probable, or nearest, words, of which one is drawn."""

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        candidates = substitutes(self.model, text, self.candidates)
        result, end = [], 0
        for match, others in zip(WORD.finditer(text), candidates, strict=True):
            drawn, pick = random.random(2)
            result.append(text[end : match.start()])
            result.append(like(match[0], others[int(pick * len(others))]) if drawn < rate and others else match[0])
            end = match.end()
        return "".join([*result, text[end:]])


@lru_cache(maxsize=TEXTS)
def substitutes(folder: Path, text: str, count: int) -> tuple[tuple[str, ...], ...]:
    """For each word of `text`, the `count` words that the model in `folder` finds most suitable, the best first; none
    for a word behind the longest row that it reads."""
    import torch

    model = _opened(folder)
    tokenizer, network = model.opened.tokenizer, model.opened.network
    limit = getattr(network.config, "max_position_embeddings", None) or 512
    encoded = tokenizer(text, truncation=True, max_length=limit, return_offsets_mapping=True)
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    words = [
        [at for at, (first, end) in enumerate(offsets) if first < match.end() and match.start() < end]
        for match in WORD.finditer(text)
    ]
    single = [number for number, tokens in enumerate(words) if len(tokens) == 1]
    scores: dict[int, Tensor] = {}
    with torch.no_grad():
        for begin in range(0, len(single), ROWS):
            chosen = single[begin : begin + ROWS]
            rows = torch.tensor([ids]).repeat(len(chosen), 1)
            positions = torch.tensor([words[number][0] for number in chosen])
            rows[torch.arange(len(chosen)), positions] = cast("int", tokenizer.mask_token_id)
            batch = {
                BatchField.INPUT_IDS: rows,
                BatchField.ATTENTION_MASK: torch.ones_like(rows),
                BatchField.MASKED_POSITIONS: positions + len(ids) * torch.arange(len(chosen)),
            }
            logits = model.opened.record.head.signals(network, batch, frozenset({Signal.MASKED_LOGITS}))
            scores.update(zip(chosen, logits[Signal.MASKED_LOGITS], strict=True))
        for number, tokens in enumerate(words):
            if len(tokens) > 1:
                mean = model.vectors[torch.tensor([ids[at] for at in tokens])].mean(0)
                scores[number] = model.vectors @ (mean / mean.norm().clamp_min(1e-12))
    written = [match[0].lower() for match in WORD.finditer(text)]
    return tuple(
        model.best(scores[number], count, but=word) if number in scores else () for number, word in enumerate(written)
    )


class _WordModel:
    """A masked language model, the tokens of its vocabulary that are whole words, and their vectors."""

    def __init__(self, opened: OpenedModel) -> None:
        import torch
        from torch.nn.functional import normalize

        self.opened = opened
        self.vectors = normalize(
            cast("nn.Embedding", opened.network.get_input_embeddings()).weight.detach().float(), dim=-1
        )
        """float32 [V, H], each of length 1."""
        tokens = opened.tokenizer.convert_ids_to_tokens(list(range(len(opened.tokenizer))))
        # of byte-level and sentence-piece vocabularies a word begins with a space, of word pieces with nothing
        spaced = any(token.startswith(("Ġ", "▁")) for token in tokens)
        plain = [token[1:] if spaced and token.startswith(("Ġ", "▁")) else "" if spaced else token for token in tokens]
        special = set(opened.tokenizer.all_special_tokens)
        self.words = {
            number: word
            for number, (token, word) in enumerate(zip(tokens, plain, strict=True))
            if token not in special and len(word) > 1 and WORD.fullmatch(word)
        }
        self._ids = torch.tensor(list(self.words), dtype=torch.int64)

    def best(self, scores: Tensor, count: int, but: str) -> tuple[str, ...]:
        """The `count` words with the highest of `scores` [V], without `but`."""
        ranked = self._ids[scores[self._ids].float().argsort(descending=True, stable=True)[: 2 * count + 2]].tolist()
        others = dict.fromkeys(self.words[number].lower() for number in ranked)
        return tuple(other for other in others if other != but)[:count]


@lru_cache(maxsize=2)
def _opened(folder: Path) -> _WordModel:
    from pipelines.models.opening import open_model

    return _WordModel(open_model(folder, "cpu"))
