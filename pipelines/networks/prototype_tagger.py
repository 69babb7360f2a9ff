"""The network that tags words with types it has a few sentences of (Hou et al. 2020; Snell et al. 2017).

Tags of an example with T types: 0 is `O`, 1 + 2t and 2 + 2t are B and I of type t. Shapes: B examples of 1 + S rows
each, W words of a support sentence, C = 1 + 2T tags.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from pipelines.networks.backbone_with_head import BackboneWithHead

IMPOSSIBLE = -10_000.0
"""Score of a tag that an example does not have: finite, so that sums over chains stay finite."""
_START, _O, _B, _I = range(4)
_TO_O, _TO_SAME_B, _TO_OTHER_B, _TO_SAME_I, _TO_OTHER_I, _TO_END = range(6)


@dataclass
class FewShotOutput(ModelOutput):
    """Outputs of a prototype tagger."""

    logits: Tensor | None = None
    """[R, L, C]: scores of tags at every token, those of the support too."""
    transitions: Tensor | None = None
    """[C + 2, C + 2], as in `networks/crf.py`."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [R, L, H], embeddings first."""


class PrototypeTagger(BackboneWithHead):
    """A backbone, the temperature of distances, and a score for each kind of transition, whatever the types are."""

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.temperature = nn.Parameter(torch.zeros(()))
        self.collapsed = nn.Parameter(torch.zeros(4, 6))
        """Score of a transition from the start, O, B or I, to O, B or I of the same type or of another, or the end.
        From the start and O every type is another one."""

    def forward(
        self,
        input_ids: Tensor,
        episode_rows: Tensor,
        episode_tags: Tensor,
        support_words: Tensor,
        support_tags: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> FewShotOutput:
        """Scores −e^τ ‖x − c‖² / √H of a token's state x and the mean c of the words with a tag in the support.

        An I tag without such a word has the mean of its type's B.

        Args:
            input_ids: int64 [R, L], the rows of the examples one after the other, each a sentence and its support.
            episode_rows: int64 [B, 1 + S], 1 for rows of an example, 0 for padding; R = B · (1 + S).
            episode_tags: int64 [B, C], 1 for tags of an example, 0 for padding.
            support_words: int64 [B, S, W], the token of each support word, −1 for padding.
            support_tags: int64 [B, S, W], the tag of each, −1 for padding.
            others: further arguments of the backbone.
        """
        inputs = {"input_ids": input_ids, **others}
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
        outputs = self.run_backbone(inputs, output_hidden_states)
        states = outputs.last_hidden_state.view(*episode_rows.shape, *outputs.last_hidden_state.shape[1:])
        prototypes, known = _prototypes(states[:, 1:], support_words, support_tags, episode_tags.shape[1])
        distances = (states.flatten(1, 2).unsqueeze(2) - prototypes.unsqueeze(1)).pow(2).sum(-1)
        logits = -self.temperature.exp() * distances / states.shape[-1] ** 0.5
        logits = logits.masked_fill(((episode_tags == 0) | ~known).unsqueeze(1), IMPOSSIBLE)
        logits = logits.view(*input_ids.shape, -1)
        return FewShotOutput(logits, self.transitions((episode_tags.shape[1] - 1) // 2), outputs.hidden_states)

    def transitions(self, types: int) -> Tensor:
        """[C + 2, C + 2]: the collapsed scores, expanded to `types` types (Hou et al. 2020, §3.1)."""
        rows, columns = (index.to(self.collapsed.device) for index in expansion(types))
        return self.collapsed[rows, columns]


def expansion(types: int) -> tuple[Tensor, Tensor]:
    """int64 [C + 2, C + 2], twice: the row and column of the collapsed table for each pair of tags. Entries that no
    chain uses, to the start or from the end, are any."""
    tags = 1 + 2 * types
    kinds = torch.tensor([_O, *[_B, _I] * types, _START, _O])
    types_of = torch.tensor([-1, *(number for number in range(types) for _ in "BI"), -1, -1])
    same = (types_of.unsqueeze(1) == types_of.unsqueeze(0)) & (types_of >= 0)
    targets = torch.full((tags + 2, tags + 2), _TO_O)
    for kind, to_same, to_other in ((_B, _TO_SAME_B, _TO_OTHER_B), (_I, _TO_SAME_I, _TO_OTHER_I)):
        targets = torch.where(kinds == kind, torch.where(same, to_same, to_other), targets)
    targets[:, tags + 1] = _TO_END
    return kinds.unsqueeze(1).expand(-1, tags + 2), targets


def _prototypes(states: Tensor, words: Tensor, tags: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """[B, C, H] means of the states [B, S, L, H] at `words` by their `tags`, and whether a tag has one, bool [B, C]."""
    vectors = states.take_along_dim(words.clamp(min=0).unsqueeze(-1), 2).flatten(1, 2)
    members = (tags.flatten(1).unsqueeze(1) == torch.arange(count, device=tags.device).view(1, -1, 1)).to(vectors.dtype)
    sums, counts = members @ vectors, members.sum(-1)
    inside = torch.arange(2, count, 2, device=tags.device)
    begins = inside - 1
    lacks = (counts[:, inside] == 0).to(vectors.dtype)
    sums = sums.index_add(1, inside, sums[:, begins] * lacks.unsqueeze(-1))
    counts = counts.index_add(1, inside, counts[:, begins] * lacks)
    return sums / counts.clamp(min=1).unsqueeze(-1), counts > 0
