"""Mentions of entities in rows of tokens, and the vectors of these entities."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pipelines.networks.entity_names import BEGINS, CONTINUES, SPECIAL
from pipelines.networks.translation_vectors import translation_vectors
from pipelines.networks.zen import Matches, NgramMatcher


class MentionMatcher(NgramMatcher):
    """Finds names in rows of tokens, where words begin and end with them."""

    roles: Tensor
    """int64 [V]: what each token does, of the vocabulary that the network was built with."""

    def __init__(self, names: list[list[int]], roles: list[int]) -> None:
        super().__init__(names)
        self.register_buffer("roles", torch.tensor(roles, dtype=torch.long))

    def forward(self, input_ids: Tensor) -> Matches:
        """The names in `input_ids` [B, L]."""
        ids, covers = super().forward(input_ids)
        length = input_ids.shape[1]
        begin = covers.to(torch.int8).argmax(1)
        end = begin + covers.sum(1)
        # tokens that joined the vocabulary later are whole words
        known = len(self.roles)
        roles = torch.where(input_ids < known, self.roles[input_ids.clamp(max=known - 1)], BEGINS)
        of_first, of_before, of_next = (roles.gather(1, at.clamp(0, length - 1)) for at in (begin, begin - 1, end))
        inside = (of_first == CONTINUES) & (begin > 0) & (of_before != SPECIAL)
        whole = (ids > 0) & ~inside & ((end >= length) | (of_next != CONTINUES))
        return Matches(torch.where(whole, ids, 0), covers & whole[:, None])


def entity_table(facts: Sequence[Sequence[int]], entities: int, width: int) -> Tensor:
    """float32 [1 + entities, width]: the vectors of entities by TransE on `facts`, from row 1; row 0 is 0.

    Without values on torch's meta device. Raises ValueError for facts about other entities, and for entities without
    any: a configuration of another origin must not make a table that its folder has no weights for.
    """
    known = tuple((head, relation, tail) for head, relation, tail in facts)
    if {one for head, _, tail in known for one in (head, tail)} != {*range(min(entities, 2 * len(known) + 1))}:
        raise ValueError(f"facts: the {entities:,} entities of num_entities are not those that the facts are about")
    if not all(0 <= relation < len(known) for _, relation, _ in known):
        raise ValueError(f"facts: {len(known):,} facts have relations from 0 to {len(known) - 1:,} at most")
    if torch.get_default_device().type == "meta":
        return torch.zeros(1 + entities, width)
    return torch.cat([torch.zeros(1, width), torch.tensor(translation_vectors(known, entities, width))])
