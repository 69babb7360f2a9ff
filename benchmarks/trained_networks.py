"""The networks that the benchmark `architectures` trains, and how each is trained."""

from __future__ import annotations

from dataclasses import dataclass

MASKED, CAUSAL, SEQUENCES = "AutoModelForMaskedLM", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM"
BERT_DIMS = "hidden_size: 256, num_hidden_layers: 4, num_attention_heads: 4, intermediate_size: 1024"
GPT_DIMS = "n_embd: 256, n_layer: 4, n_head: 4"
LETTERS = "letter_size: 16, filters: [[1, 16], [2, 32], [3, 64], [4, 64]], highway_layers: 1"


@dataclass(frozen=True)
class TrainedNetwork:
    """How a network is trained; parts as a recipe spells them."""

    backbone: str
    head: str = "masked_lm"
    objective: str = "masked_lm"
    corruption: str = "{name: token_mask, rate: 0.15}"
    tokenizer: str = "wordpiece"
    vocabulary: int = 30522
    framed: bool = True
    network: str | None = None
    """Auto class of transformers that opens the network with its head; None for a network that only we have."""


def transformer(architecture: str, dims: str, positions: str = "positions: 512, ") -> str:
    """The backbone of an architecture."""
    return f"{{name: transformer, architecture: {architecture}, {positions}dims: {{{dims}}}}}"


def encoder(
    architecture: str,
    dims: str = BERT_DIMS,
    positions: str = "positions: 512, ",
    tokenizer: str = "wordpiece",
    network: str = MASKED,
) -> TrainedNetwork:
    """An encoder that predicts masked tokens."""
    return TrainedNetwork(transformer(architecture, dims, positions), tokenizer=tokenizer, network=network)


def decoder(architecture: str) -> TrainedNetwork:
    """A decoder that predicts the next token."""
    return causal(transformer(architecture, GPT_DIMS), network=CAUSAL, tokenizer="gpt_bpe", vocabulary=30522)


def causal(
    backbone: str, network: str | None = None, tokenizer: str = "words", vocabulary: int = 10_000
) -> TrainedNetwork:
    """A network that predicts the next token."""
    return TrainedNetwork(backbone, "causal_lm", "causal_lm", "", tokenizer, vocabulary, framed=False, network=network)


def both_sides(backbone: str) -> TrainedNetwork:
    """A network of two directions that predicts the next and the previous word."""
    return TrainedNetwork(backbone, "bidirectional_lm", "bidirectional_lm", "", "spelled_words", 10_000, framed=False)


def on_states(backbone: str, tokenizer: str = "wordpiece") -> TrainedNetwork:
    """A network without a head of its own that predicts masked tokens."""
    return TrainedNetwork(backbone, head="masked_lm_on_states", tokenizer=tokenizer)


ROWS: dict[str, TrainedNetwork] = {
    "albert": encoder("albert", f"embedding_size: 128, {BERT_DIMS}"),
    "bart": TrainedNetwork(
        transformer(
            "bart",
            "d_model: 256, encoder_layers: 4, decoder_layers: 4, encoder_attention_heads: 4, "
            "decoder_attention_heads: 4, encoder_ffn_dim: 1024, decoder_ffn_dim: 1024",
        ),
        "sequence_to_sequence", "sequence_to_sequence",
        "{name: text_infilling, rate: 0.3, mean_length: 3}, original_as_target", "byte_bpe", network=SEQUENCES,
    ),
    "bert": encoder("bert"),
    "electra": encoder("electra", f"embedding_size: 128, {BERT_DIMS}"),
    "gpt2": decoder("gpt2"),
    "mobilebert": encoder(
        "mobilebert",
        "hidden_size: 256, embedding_size: 128, intra_bottleneck_size: 128, num_hidden_layers: 4, "
        "num_attention_heads: 4, intermediate_size: 512, num_feedforward_networks: 2",
    ),
    "modernbert": encoder("modernbert", positions=""),
    "nezha": encoder("nezha", positions=""),
    "openai-gpt": decoder("openai-gpt"),
    "roberta": encoder("roberta", tokenizer="byte_bpe"),
    "studied_transformer": encoder("studied_transformer"),
    "t5": TrainedNetwork(
        transformer(
            "t5", "d_model: 256, d_kv: 64, d_ff: 1024, num_layers: 4, num_decoder_layers: 4, num_heads: 4", positions=""
        ),
        "sequence_to_sequence", "sequence_to_sequence", "{name: sentinel_spans, density: 0.15, mean_length: 3}",
        "unigram", network=SEQUENCES,
    ),
    # transformers lists its network with a vocabulary among those of language models
    "xlnet": encoder(
        "xlnet", "d_model: 256, n_layer: 4, n_head: 4, d_inner: 1024", "", tokenizer="xlnet_unigram", network=CAUSAL
    ),
    "awd_lstm": causal("{name: awd_lstm, hidden_size: 256, inner_size: 512}"),
    "bigru": on_states("{name: bigru, hidden_size: 256, num_hidden_layers: 4, embedding_size: 256}"),
    "bilstm": on_states("{name: bilstm, hidden_size: 256, num_hidden_layers: 4, embedding_size: 256}"),
    "context2vec": TrainedNetwork(
        "{name: context2vec, embedding_size: 256, lstm_size: 256, inner_size: 512, hidden_size: 256}",
        "context_to_word", "context_to_word", "every_word, {name: negative_samples, samples: 10}", "words", 10_000,
        framed=False,
    ),
    "convolutional": on_states("{name: convolutional, hidden_size: 256, num_hidden_layers: 4, window: 3}"),
    "elman": causal("{name: elman, hidden_size: 256}"),
    "elmo": both_sides(f"{{name: elmo, projection_size: 256, lstm_size: 512, {LETTERS}}}"),
    "ernie_thu": on_states(
        "{name: ernie_thu, hidden_size: 256, num_hidden_layers: 2, num_aggregators: 2, num_attention_heads: 4, "
        "intermediate_size: 1024, positions: 512}"
    ),
    "gru": causal("{name: gru, hidden_size: 256}"),
    "knowbert": on_states(
        "{name: knowbert, hidden_size: 256, num_hidden_layers: 4, after: 3, num_attention_heads: 4, "
        "intermediate_size: 1024, positions: 512}"
    ),
    "log_bilinear": causal("{name: log_bilinear, order: 6, hidden_size: 256}"),
    "lstm": causal("{name: lstm, hidden_size: 256}"),
    "neural_bigram": causal("neural_bigram", vocabulary=4000),
    "nnlm": causal("{name: nnlm, order: 5, embedding_size: 64, inner_size: 256}"),
    "taglm": on_states("{name: taglm, hidden_size: 256, num_hidden_layers: 4, embedding_size: 256}"),
    "transformer_bilm": both_sides(
        f"{{name: transformer_bilm, projection_size: 256, num_hidden_layers: 4, num_attention_heads: 4, {LETTERS}}}"
    ),
    "transformer_xl": causal(
        "{name: transformer_xl, hidden_size: 256, num_hidden_layers: 4, num_attention_heads: 4, "
        "intermediate_size: 1024, memory_length: 128}"
    ),
    "word_vectors": TrainedNetwork(
        "{name: word_vectors, hidden_size: 256}", "{name: noise_prediction, architecture: skip_gram}",
        "negative_sampling", "context_windows, {name: negative_samples, samples: 5}", "words", 10_000, framed=False,
    ),
    "zen": on_states(
        "{name: zen, hidden_size: 256, num_hidden_layers: 4, num_ngram_layers: 2, num_attention_heads: 4, "
        "intermediate_size: 1024, positions: 512}",
        "ngram_characters",
    ),
}  # fmt: skip
"""Architecture or backbone → how it is trained, four layers of 256 where it has layers."""
COUNTED = ("ngram", "paragraph_vectors", "prototype_vectors")
"""Backbones whose weights are estimated from counts or windows, without a gradient: `parity` and `ngram_speed` measure
those."""
