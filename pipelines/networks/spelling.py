"""From tokens to words, and from words to the letters that spell them.

A word is a token and those after it that continue it. Its letters are the bytes of them all, between a letter that
begins a word and one that ends it, up to a length, as in the code of Peters et al. 2018; a special token is a word of
one letter of its own.

Shapes: B rows of L tokens, which make up W words at most; U different words of C letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

BYTES = 256
PADDING, BEGIN, END = 0, BYTES + 1, BYTES + 2
"""Letters besides bytes, which are 1 to 256; special tokens have those after END."""


class SpelledRows(NamedTuple):
    """The words of a batch."""

    letters: Tensor
    """int64 [U, C]: the letters of each different word."""
    spelling_of: Tensor
    """int64 [B, W]: row of `letters` for each word."""
    word_of: Tensor
    """int64 [B, L]: the word of each token, −1 for padding."""
    lengths: Tensor
    """int64 [B]: number of words."""
    first_ids: Tensor
    """int64 [B, W]: the first token of each word."""
    tokens: Tensor
    """int64 [B, W]: number of tokens of each word; 0 beyond the last."""

    @property
    def reversal(self) -> Tensor:
        """int64 [B, W]: index of the word that comes in each one's stead when rows are read backwards."""
        order = torch.arange(self.tokens.shape[1], device=self.lengths.device)
        last = self.lengths.unsqueeze(1) - 1
        return torch.where(order <= last, last - order, order)

    def pairs(self) -> Tensor:
        """bool [B, W − 1]: whether a word has a right neighbour."""
        order = torch.arange(1, self.tokens.shape[1], device=self.lengths.device)
        return order < self.lengths.unsqueeze(1)

    def ids(self, unknown: int) -> Tensor:
        """int64 [B, W]: the token of each word, `unknown` for a word of several."""
        return torch.where(self.tokens == 1, self.first_ids, unknown)


class Speller(nn.Module):
    """Puts tokens together to words, and spells these.

    Args:
        spellings: the bytes of each token as characters 0 to 255; empty for special tokens.
        continuing: ids of the tokens that continue a word.
        length: C, with the letters that begin and end a word; what is longer is cut.
    """

    table: Tensor
    """int32 [V, …]: the letters of each token, PADDING after the last."""
    sizes: Tensor
    """int64 [V]: the number of letters of each token."""
    continues: Tensor
    """bool [V]: whether a token continues a word."""
    special: Tensor
    """bool [V]: whether a token is special."""

    def __init__(self, spellings: Sequence[str], continuing: Sequence[int], length: int) -> None:
        super().__init__()
        special = [at for at, spelling in enumerate(spellings) if not spelling]
        codes = [[1 + ord(letter) for letter in spelling][: length - 2] for spelling in spellings]
        for number, at in enumerate(special):
            codes[at] = [END + 1 + number]
        self.letters = END + 1 + len(special)
        """Number of different letters."""
        self.length = length
        table = torch.zeros(len(codes), max(map(len, codes)), dtype=torch.int32)
        for at, one in enumerate(codes):
            table[at, : len(one)] = torch.tensor(one, dtype=torch.int32)
        continues = torch.zeros(len(codes), dtype=torch.bool)
        continues[list(continuing)] = True
        specials = torch.zeros(len(codes), dtype=torch.bool)
        specials[special] = True
        # saved with the weights, which are meaningless for any other spelling
        self.register_buffer("table", table)
        self.register_buffer("sizes", torch.tensor([len(one) for one in codes]))
        self.register_buffer("continues", continues)
        self.register_buffer("special", specials)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> SpelledRows:
        """The words of `input_ids` [B, L]."""
        begins, real = self._begins(input_ids, attention_mask)
        word_of = torch.where(real, begins.cumsum(1) - 1, -1)
        lengths = begins.sum(1)
        rows, words = len(input_ids), int(lengths.max())
        at = (word_of + words * torch.arange(rows, device=input_ids.device).unsqueeze(1))[real]
        ids = input_ids[real]
        tokens = torch.zeros(rows * words, dtype=torch.long, device=input_ids.device).index_add_(
            0, at, torch.ones_like(at)
        )
        first_ids = torch.zeros_like(tokens)
        first_ids[at[begins[real]]] = ids[begins[real]]
        letters = self._letters(ids, at, rows * words)
        unique, spelling_of = _unique_rows(letters)
        shape = (rows, words)
        return SpelledRows(unique, spelling_of.view(shape), word_of, lengths, first_ids.view(shape), tokens.view(shape))

    def count(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """int64 [B]: the number of words in each row."""
        return self._begins(input_ids, attention_mask)[0].sum(1)

    def _begins(self, input_ids: Tensor, attention_mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """bool [B, L] each: whether a token begins a word, and whether it is no padding."""
        real = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        inside = self.continues[input_ids]
        # at the edge of a row or beside a special token, the rest of a word is a word
        inside[:, 0] = False
        inside[:, 1:] &= ~self.special[input_ids[:, :-1]]
        return real & ~inside, real

    def _letters(self, ids: Tensor, at: Tensor, words: int) -> Tensor:
        """int64 [words, C]: the letters of each word, whose tokens are `ids` [N] at the ascending words `at` [N]."""
        sizes = self.sizes[ids]
        ends = sizes.cumsum(0)
        spelled = torch.zeros(words, dtype=torch.long, device=ids.device).index_add_(0, at, sizes)
        before = (ends - sizes) - (spelled.cumsum(0) - spelled)[at]
        order = torch.arange(self.table.shape[1], device=ids.device)
        positions = 1 + before.unsqueeze(1) + order
        fits = (order < sizes.unsqueeze(1)) & (positions < self.length - 1)
        letters = torch.full((words, self.length), PADDING, device=ids.device)
        row = at.unsqueeze(1).expand_as(positions)
        letters[row[fits], positions[fits]] = self.table[ids].long()[fits]
        every = torch.arange(words, device=ids.device)
        letters[:, 0] = BEGIN
        letters[every, (spelled + 1).clamp(max=self.length - 1)] = END
        return letters


def _unique_rows(letters: Tensor) -> tuple[Tensor, Tensor]:
    """The different rows [U, C] of `letters` [N, C], and which of them each is, int64 [N]."""
    generator = torch.Generator().manual_seed(0)
    factors = torch.randint(-(2**62), 2**62, (letters.shape[1],), generator=generator).to(letters.device)
    # two words of a batch have the same 64 bits with a probability of 2⁻⁴⁰ or less
    digests = (letters * factors).sum(1)
    values, inverse = torch.unique(digests, return_inverse=True)
    chosen = torch.zeros_like(values).scatter_(0, inverse, torch.arange(len(letters), device=letters.device))
    return letters[chosen], inverse
