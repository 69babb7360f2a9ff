"""A BERT with embeddings of channels is the published architecture: LayoutLM with boxes, XLM with languages, each equal
to its implementation in transformers with the same weights."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertModel, LayoutLMConfig, LayoutLMModel, XLMConfig, XLMModel

from pipelines.networks.channel_embeddings import attach
from pipelines.parts.embeddings import Embedding

WIDTH, LAYERS, HEADS, VOCABULARY, POSITIONS = 32, 3, 4, 97, 40
ROWS, LENGTH = 5, 24


def bert(embedding: str, **options: int) -> BertModel:
    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=4 * WIDTH, max_position_embeddings=POSITIONS,
    )  # fmt: skip
    network = BertModel(config, add_pooling_layer=False)
    attach(network, [Embedding.model_validate({"name": embedding, **options})])
    return network.double().eval()


def padded(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(3, VOCABULARY, (ROWS, LENGTH), generator=generator)
    mask = (torch.arange(LENGTH) < torch.tensor([24, 20, 9, 24, 2])[:, None]).long()
    return ids * mask, mask


@pytest.fixture
def generator() -> torch.Generator:
    torch.manual_seed(0)
    return torch.Generator().manual_seed(0)


def test_boxes_are_layoutlm(generator: torch.Generator) -> None:
    network = bert("boxes")
    config = LayoutLMConfig(**{**network.config.to_dict(), "model_type": "layoutlm"}, max_2d_position_embeddings=1024)
    published = LayoutLMModel(config).double().eval()
    tables = {"x": "x_position", "y": "y_position", "height": "h_position", "width": "w_position"}
    renamed = {
        f"embeddings.{theirs}_embeddings.weight": f"embeddings.word_embeddings.channels.boxes.{ours}.weight"
        for ours, theirs in tables.items()
    }
    weights = {renamed.get(name, name): value for name, value in published.state_dict().items()}
    unused = {name for name in weights if name.startswith("pooler.") or name.endswith("position_ids")}
    network.load_state_dict({name: value for name, value in weights.items() if name not in unused})

    ids, mask = padded(generator)
    corners = torch.randint(0, 1001, (ROWS, LENGTH, 2, 2), generator=generator).sort(dim=2).values
    boxes = corners.flatten(2)
    with torch.no_grad():
        expected = published(input_ids=ids, bbox=boxes, attention_mask=mask).last_hidden_state
        given = network(input_ids=ids, attention_mask=mask, channels={"boxes": boxes}).last_hidden_state
        moved = network(input_ids=ids, attention_mask=mask, channels={"boxes": boxes.flip(0)}).last_hidden_state
    torch.testing.assert_close(given, expected, rtol=0, atol=1e-12)
    assert (given - moved).abs().max() > 0.1, "the boxes make a difference"


def test_languages_are_xlm(generator: torch.Generator) -> None:
    network = bert("languages", size=3)
    published = XLMModel(
        XLMConfig(
            vocab_size=VOCABULARY, emb_dim=WIDTH, n_layers=LAYERS, n_heads=HEADS, gelu_activation=True, n_langs=3,
            max_position_embeddings=POSITIONS, pad_index=0, layer_norm_eps=network.config.layer_norm_eps,
        )
    ).double().eval()  # fmt: skip
    with torch.no_grad():
        for parameter in published.parameters():  # XLM begins with biases of 0 and gains of 1, which hide a mistake
            parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    theirs = dict(published.state_dict())
    words = "embeddings.word_embeddings"
    renamed = {
        "embeddings.weight": f"{words}.weight",
        "lang_embeddings.weight": f"{words}.channels.languages.rows.weight",
        "position_embeddings.weight": "embeddings.position_embeddings.weight",
    }
    modules = {"layer_norm_emb": "embeddings.LayerNorm"}
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        modules |= {
            f"attentions.{number}.q_lin": f"{layer}.attention.self.query",
            f"attentions.{number}.k_lin": f"{layer}.attention.self.key",
            f"attentions.{number}.v_lin": f"{layer}.attention.self.value",
            f"attentions.{number}.out_lin": f"{layer}.attention.output.dense",
            f"layer_norm1.{number}": f"{layer}.attention.output.LayerNorm",
            f"ffns.{number}.lin1": f"{layer}.intermediate.dense",
            f"ffns.{number}.lin2": f"{layer}.output.dense",
            f"layer_norm2.{number}": f"{layer}.output.LayerNorm",
        }
    renamed |= {f"{a}.{kind}": f"{b}.{kind}" for a, b in modules.items() for kind in ("weight", "bias")}
    weights = {ours: theirs.pop(name) for name, ours in renamed.items()}
    assert set(theirs) <= {"position_ids"}, "every weight of XLM has a place"
    # BERT's sentence types, which XLM does not have, add nothing
    weights["embeddings.token_type_embeddings.weight"] = torch.zeros(2, WIDTH, dtype=torch.float64)
    network.load_state_dict(weights, strict=False)

    ids, mask = padded(generator)
    languages = torch.randint(0, 3, (ROWS, LENGTH), generator=generator)
    # a translation pair: positions restart at the second sentence (§3.3)
    positions = torch.cat([torch.arange(10), torch.arange(LENGTH - 10)]).expand(ROWS, -1)
    with torch.no_grad():
        expected = published(input_ids=ids, attention_mask=mask, langs=languages, position_ids=positions)[0]
        given = network(
            input_ids=ids, attention_mask=mask, position_ids=positions, channels={"languages": languages}
        ).last_hidden_state
    real = mask.bool()  # XLM sets the states of padding to zero
    torch.testing.assert_close(given[real], expected[real], rtol=0, atol=1e-7)  # XLM has a softmax of float32


def test_vectors_beside_tokens_are_added_after_one_matrix(generator: torch.Generator) -> None:
    network = bert("vectors", size=6)
    ids, mask = padded(generator)
    vectors = torch.randn(ROWS, LENGTH, 6, generator=generator)
    vectors[0, :9] = 0
    words = network.get_input_embeddings()
    matrix = words.channels["vectors"]["projection"].weight
    with torch.no_grad():
        matrix.normal_(generator=generator)
        given = network(input_ids=ids, attention_mask=mask, channels={"vectors": vectors}).last_hidden_state
        plain = BertModel(network.config, add_pooling_layer=False).double().eval()
        plain.load_state_dict({name: value for name, value in network.state_dict().items() if ".channels." not in name})
        summed = words.weight[ids] + vectors.double() @ matrix.T
        expected = plain(inputs_embeds=summed, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(given, expected, rtol=0, atol=1e-12)
