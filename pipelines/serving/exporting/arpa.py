"""A counted language model as an ARPA file, which KenLM, SRILM and speech recognisers read."""

from __future__ import annotations

from pathlib import Path

from pipelines.errors import RecipeError

SUFFIX = ".arpa"


def export_arpa(folder: Path, to: Path) -> None:
    """Write the tables of the n-gram model in `folder` into the file `to`.

    Raises RecipeError for a model that is no n-gram model, DataError for a token that such a file cannot hold.
    """
    from pipelines.models.opening import open_model
    from pipelines.networks.ngram import NgramModel
    from pipelines.parts.estimates.arpa_file import ArpaVocabulary, write_arpa

    opened = open_model(folder, "cpu")
    backbone = opened.network.base_model
    if not isinstance(backbone, NgramModel):
        raise RecipeError(
            f"--to {to.name}: an ARPA file holds counted n-grams, and this model is a "
            f"{opened.network.config.model_type}; export it into a folder"
        )
    tokenizer = opened.tokenizer
    texts = [str(word) for word in tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))]
    end = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
    vocabulary = ArpaVocabulary.of(texts, int(end), tokenizer.unk_token_id)
    write_arpa({name: value.numpy() for name, value in backbone.state_dict().items()}, vocabulary, to)
