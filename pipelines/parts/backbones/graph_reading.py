"""Base class of encoders that read a graph of entities where their text mentions these."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from pipelines.errors import RecipeError
from pipelines.networks.entity_graph import read_graph, senses_of_names
from pipelines.networks.entity_names import names_in_tokens, token_roles
from pipelines.networks.graph_files import GraphFiles, graph_paths
from pipelines.parts.backbones import Backbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

OF_NAMES = ("positions", "graphs", "endings", "left_out")
"""Options that the network's configuration has in other words."""


class GraphReading(Backbone):
    """BERT's layers, and entities of a graph at the mentions of a row, which the network finds in its tokens.

    Entities have vectors by TransE on the graph, which do not train.
    """

    graphs: GraphFiles = Field(
        (
            Path("recipes/knowledge/kinds_of_words.tsv"),
            Path("recipes/knowledge/scientific_terms.tsv"),
            Path("recipes/knowledge/senses_of_terms.tsv"),
        ),
        min_length=1,
    )
    """UTF-8 files of tab-separated lines of subject, predicate and object, or of a term and the term that it is a kind
    of; a name in several senses is followed by them in parentheses. Relative to the current directory, or else to what
    is shipped."""
    endings: tuple[str, ...] = ("s",)
    """What a name may end in besides, in place of lemmatisation."""
    left_out: tuple[str, ...] = ("function word", "article")
    """Entities of the graph of which nothing is mentioned that is a kind of them, at any depth: WordNet has no function
    words."""
    hidden_size: int = Field(768, gt=0)
    """Width of every layer, in elements."""
    num_hidden_layers: int = Field(12, gt=0)
    """Number of layers over tokens alone."""
    num_attention_heads: int = Field(12, gt=0)
    """Number of heads of a layer's attention."""
    intermediate_size: int = Field(3072, gt=0)
    """Width between the two linear layers of a feed-forward sub-layer, in elements."""
    entity_size: int = Field(200, gt=0)
    """Width of the vectors of entities, in elements."""
    entity_heads: int = Field(4, gt=0)
    """Number of heads of attention in that width."""
    positions: int = Field(512, gt=0)
    """Maximum sequence length in tokens."""

    @model_validator(mode="after")
    def _divides(self) -> Self:
        for width, heads in (("hidden_size", "num_attention_heads"), ("entity_size", "entity_heads")):
            if getattr(self, width) % getattr(self, heads):
                raise ValueError(f"{width} {getattr(self, width)} is no multiple of {heads} {getattr(self, heads)}")
        return self

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return graph_paths(self.graphs)

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.ONE_STACK})

    @property
    def max_length(self) -> int | None:
        return self.positions

    @property
    def token_types(self) -> int:
        return 2

    @classmethod
    def recognise(cls, config: Mapping[str, Any]) -> Self | None:
        if config.get("model_type") != cls.name:
            return None
        options = {key: config[key] for key in cls.model_fields if key in config}
        return cls.model_validate({**options, "positions": config["max_position_embeddings"]})

    def settings(self, tokenizer: PreTrainedTokenizerFast, length: int) -> dict[str, Any]:
        """Keys and values of the configuration of a new network, with the graph and its names in tokens.

        Raises RecipeError for sequences that are too long, and for a graph without a name in these tokens.
        """
        if length > self.positions:
            raise RecipeError(
                f"backbone: sequences of {length} tokens do not fit {self.positions} positions; raise "
                "backbone.positions or lower budget.length"
            )
        graph = read_graph(self.reads_files)
        names = names_in_tokens(senses_of_names(graph, self.endings, self.left_out), tokenizer)
        if not names:
            raise RecipeError(
                f"backbone.graphs: no name of an entity, such as {graph.entities[0]!r}, can be written in tokens of "
                "the tokenizer; give a graph of its language"
            )
        return {
            **{key: value for key, value in self if key not in OF_NAMES},
            "vocab_size": len(tokenizer),
            "pad_token_id": tokenizer.pad_token_id,
            "max_position_embeddings": self.positions,
            "names": [[*one] for one in names],
            "candidates": [[*of_name] for of_name in names.values()],
            "priors": [[*of_name.values()] for of_name in names.values()],
            "facts": graph.facts.tolist(),
            "num_entities": len(graph.entities),
            "token_roles": token_roles(tokenizer),
        }
