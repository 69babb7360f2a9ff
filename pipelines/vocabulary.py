"""The vocabulary that parts of a recipe share: fields of a batch, signals of a network, abilities of a backbone.

| word | is | provided by | needed by |
|---|---|---|---|
| `Field` | a tensor in a batch | layouts, segmentations, corruptions, `Head.encode` | heads, objectives, corruptions |
| `Channel` | integers or a vector alongside each token: a field | annotations | embeddings, corruptions |
| `Signal` | a tensor that a head computes from a batch | heads | objectives |
| `Ability` | a property of an architecture | backbones | heads, layouts, probes |

Parts never refer to each other, only to these words: a recipe is valid when whatever one of its parts needs is provided
by another (`pipelines.recipe.check`). A new word here is therefore an architectural decision, not a convenience. What
only the parts of one system exchange is a word of theirs, which each of them names in its own file (`Field.of_rows`,
`Field.of_masked_positions`, `Field.of_windows`, `Field.of_channel`, `Signal.of_head`).

Shapes: B rows in a batch, L tokens in a row, M predicted positions in the whole batch, T tokens in a target sequence, V
vocabulary, H hidden size, C classes, K choices; of word vectors, N windows in the batch, W context words in each, K
negatives, D depth of the Huffman tree; below a network that reads others, F of these and S tokens in their longest row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pipelines.words import EACH_MASKED_POSITION, EACH_WINDOW, FIELDS_OF_PARTS, FieldWord, VocabularyWord


class Field(FieldWord):
    """A named tensor in a batch."""

    INPUT_IDS = "input_ids"
    """int64 [B, L]: token ids that the network reads, after corruption."""
    ATTENTION_MASK = "attention_mask"
    """int64 [B, L]: 1 for a token, 0 for padding. Absent when nothing is padded."""
    TOKEN_TYPE_IDS = "token_type_ids"
    """int64 [B, L]: 0 in the first text of a pair, 1 in the second. Absent where the tokenizer has no such types."""
    POSITION_IDS = "position_ids"
    """int64 [B, L]: position of each token. Absent when positions are 0 … L − 1."""
    ORIGINAL_IDS = "original_ids"
    """int64 [B, L]: token ids before corruption."""
    DOCUMENTS = "documents"
    """int64 [B, L]: index of the document that each token of a plain-text row belongs to; −1 for padding."""
    DOCUMENT_STARTS = "document_starts"
    """int64 [B, L]: 1 where a document begins, or the padding after the last one, in rows whose documents do not attend
    to each other. Absent where a row is read as one text."""
    WORD_STARTS = "word_starts"
    """int64 [B, L]: 1 where a token begins a word of the segmentation, 0 inside a word."""
    TEXTS = "texts"
    """int64 [B, L]: number of the text, from 0 and within its document, that a token belongs to. Absent where documents
    are single texts."""
    VISIBLE = "visible"
    """bool [B, L, L]: whether token i attends to token j. Absent where every token attends to all that is not padding,
    or to its own document."""
    BRANCHES = "branches"
    """int64 [B, L]: number, from 1 and within its row, of the injected fact that a token belongs to; 0 for the tokens
    of the text itself. Injected tokens have no attention mask."""
    ENTITIES = "entities"
    """int64 [B, L]: number, from 1 and within its row, of the entity that a token of the text is part of, or that an
    injected token says something about; 0 for all others."""
    MEMORY = "memory"
    """tuple of tensors: the state kept of the rows that this batch continues. Absent in the first batch."""
    ITEMS = "items"
    """int64 [B]: index of each row's item among the items of the stage, plus the epoch times their number where every
    epoch changes them; only where every row is exactly one item."""
    MASKED_POSITIONS = "masked_positions"
    """int64 [M]: ascending indices of the predicted tokens, into the flattened [B·L] tokens of the batch."""
    MASKED_LABELS = "masked_labels"
    """int64 [M]: original token id at each predicted position."""
    SPAN_EDGES = "span_edges"
    """int64 [M, 2]: for each masked position, the flattened positions just before and just after its span."""
    SPAN_OFFSETS = "span_offsets"
    """int64 [M]: offset of each masked position within its span, from 0."""
    PERMUTATION_MASK = "permutation_mask"
    """float32 [B, L, L]: 1 where token i must not attend to token j."""
    TARGET_MAPPING = "target_mapping"
    """float32 [B, T, L]: row t is the one-hot position of the t-th predicted token of its sequence."""
    REPLACED = "replaced"
    """int64 [B, L]: 1 where a generator's token replaces the original; the objective that samples writes it."""
    PARTNER = "partner"
    """int64 [B]: index of the row with the other half of the same passage; −1 where the halves share no document."""
    SEGMENT_LABELS = "segment_labels"
    """int64 [B]: 0 where the second segment of a row continues the first, 1 where it does not, −100 where a row is no
    pair of segments."""
    CENTERS = "centers"
    """int64 [N]: the centre word of each window, in word-vector training."""
    CONTEXTS = "contexts"
    """int64 [N, W]: the words around each centre; −1 where a window has fewer."""
    NEGATIVES = "negatives"
    """int64 [N, K]: words drawn from the noise distribution for each centre."""
    LABELS = "labels"
    """int64 [B]: the class of each text, or the correct choice of each question."""
    SCORES = "scores"
    """float32 [B]: ground-truth score of each text pair."""
    TAG_LABELS = "tag_labels"
    """int64 [B, L]: tag of each token that begins a word, −100 elsewhere."""
    ANSWERABLE = "answerable"
    """int64 [B, L]: 1 for tokens of the context, in which the answer is; 0 for the question and special tokens."""
    SPAN_LABELS = "span_labels"
    """int64 [B, 2]: first and last token of the answer; 0, 0 where the row does not contain it."""
    CHOICES = "choices"
    """int64 [B, K]: 1 for a choice of the question, 0 for padding up to the question with the most choices."""
    TARGET_IDS = "target_ids"
    """int64 [B, T]: token ids of the text to generate, −100 after its end."""
    FEATURE_IDS = "feature_ids"
    """int64 [B, F, S]: token ids of the same row for each feature network, cut by its own tokenizer."""
    FEATURE_MASK = "feature_mask"
    """int64 [B, F, S]: 1 for a token of that row, 0 for padding."""
    FEATURE_WORDS = "feature_words"
    """int64 [B, F, L, 2]: first and last of the S tokens that make up the word of each token; −1 for a token without a
    word, and where the other row does not hold its word."""
    FEATURE_STATES = "feature_states"
    """tuple of F tuples of tensors [B, L, …]: the layers that are read of each feature network, at the tokens of this
    row; None in place of those of a network that is run for this batch. Absent where all of them are."""

    @classmethod
    def of_channel(cls, name: str) -> Field:
        """The field in which a batch holds the channel `name`: [B, L, …]. From then on `Field(name)` is it."""
        if name in FIELDS_OF_PARTS:
            raise ValueError(f"{name!r} is a field of parts, with values {FIELDS_OF_PARTS[name]}, and no channel")
        return cls._added(name)

    @property
    def is_channel(self) -> bool:
        """Whether the field has values alongside every token of a row, which move and disappear with the tokens."""
        return self in KNOWN_CHANNELS or not (self.is_listed or self in FIELDS_OF_PARTS)

    @property
    def is_per_masked_position(self) -> bool:
        """Whether the field has one value for each predicted position."""
        return self in PER_MASKED_POSITION or FIELDS_OF_PARTS.get(self) == EACH_MASKED_POSITION

    @property
    def is_per_window(self) -> bool:
        """Whether the field has one value for each word window."""
        return self in PER_WINDOW or FIELDS_OF_PARTS.get(self) == EACH_WINDOW


KNOWN_CHANNELS = frozenset({Field.WORD_STARTS, Field.TEXTS})
"""Fields of the vocabulary that are channels: what segmentations and stages with several texts make."""


@dataclass(frozen=True)
class Channel:
    """Integers or a vector that stand alongside each token: the language, the box on a page, how a region looks.

    Declared once, by its annotation. Whatever moves, cuts or removes tokens does the same to their values.
    """

    name: str
    size: int | None
    """Values are 0 … `size` − 1; None for vectors, whose values are finite numbers."""
    shape: tuple[int, ...] = ()
    """Shape of the value of one token; () is a single number. Of vectors, their width."""
    padding: int = 0
    """Value at padding tokens."""
    edges: tuple[int, int] | None = None
    """Values at the special tokens before a text, and at those after it; None: the value of the nearest token."""

    def __post_init__(self) -> None:
        if self.name in Field.__members__.values() and self.name not in KNOWN_CHANNELS:
            raise ValueError(f"a batch already has a field {self.name!r}: give the channel another name")
        if self.size is None and len(self.shape) != 1:
            raise ValueError(f"the channel {self.name!r} has vectors: give their width, shape: (width,)")
        Field.of_channel(self.name)

    @property
    def field(self) -> Field:
        """The field of a batch with this channel: [B, L, *shape]."""
        return Field.of_channel(self.name)

    @property
    def kind(self) -> str:
        """dtype of its values in a batch: int64, or float32 for vectors."""
        return "float32" if self.size is None else "int64"


WORD_STARTS = Channel(Field.WORD_STARTS, size=2, padding=1, edges=(1, 1))
"""The channel of a segmentation: whether a token begins a word."""


def numbered_texts(count: int) -> list[Channel]:
    """The channel of documents that consist of `count` texts; none for documents of one text."""
    return [Channel(Field.TEXTS, size=count)] if count > 1 else []


TOKEN_INDICES = frozenset({Field.MASKED_POSITIONS, Field.SPAN_EDGES})
"""Fields whose values are indices into the flattened tokens of the batch."""
ROW_INDICES = frozenset({Field.PARTNER})
"""Fields whose values are indices of rows of the batch; −1 is no row."""
PER_MASKED_POSITION = frozenset({Field.MASKED_POSITIONS, Field.MASKED_LABELS, Field.SPAN_EDGES, Field.SPAN_OFFSETS})
"""Listed fields with one value for each predicted position. In a batch without `MASKED_POSITIONS`, every row has
equally many."""
PER_WINDOW = frozenset({Field.CENTERS, Field.CONTEXTS, Field.NEGATIVES})
"""Listed fields with one value for each word window; their number varies from batch to batch. All other fields have
one value for each row, but for those of parts (`Field.is_per_window`, `Field.is_per_masked_position`)."""


class Signal(VocabularyWord):
    """A named tensor that a head computes from a batch."""

    MASKED_LOGITS = "masked_logits"
    """[M, V]: vocabulary logits at the masked positions only."""
    BOUNDARY_LOGITS = "boundary_logits"
    """[M, V]: vocabulary logits of the masked tokens, predicted from the edges of their spans."""
    NEXT_LOGITS = "next_logits"
    """[B, L, V]: vocabulary logits of the token after each position."""
    TARGET_LOGITS = "target_logits"
    """[B, T, V]: vocabulary logits of the text to generate."""
    REPLACED_LOGITS = "replaced_logits"
    """[B, L]: logit that each token was replaced by the generator."""
    NOISE_LOGITS = "noise_logits"
    """[N, 1 + K]: scores of the true word, then of the negatives."""
    PATH_LOGITS = "path_logits"
    """[N, D]: logit of turning right at each inner node on the path to the word; 0 beyond the word's depth."""
    PATH_TURNS = "path_turns"
    """int64 [N, D]: the correct turn at each inner node: 1 right, 0 left, −100 beyond the word's depth."""
    POOLED = "pooled"
    """[B, H]: one vector for each row."""
    BIDIRECTIONAL_LOGITS = "bidirectional_logits"
    """tuple of two tensors [N, V]: vocabulary logits of N words from the words before each, and of N words from those
    after each."""
    BIDIRECTIONAL_TARGETS = "bidirectional_targets"
    """tuple of two tensors int64 [N]: the ids of those words."""
    SEGMENT_LOGITS = "segment_logits"
    """[B, 2]: logits that the second segment of each row continues the first, and that it does not."""
    LOGITS = "logits"
    """[B, C]: class logits of each text; [B, K]: logits of the choices of each question."""
    SCORE = "score"
    """[B]: predicted score of each text pair."""
    TAG_LOGITS = "tag_logits"
    """[B, L, C]: tag logits of each token."""
    TAG_TRANSITIONS = "tag_transitions"
    """[C + 2, C + 2]: score of each transition between tags; the last two rows and columns are start and end."""
    SPAN_LOGITS = "span_logits"
    """[B, L, 2]: logits of each token as first and last of the answer; −inf outside the context but for token 0."""
    HIDDEN_STATES = "hidden_states"
    """tuple of layers + 1 tensors [B, L, H]: embeddings first, top layer last."""
    ATTENTION_SCORES = "attention_scores"
    """tuple of one tensor [B, heads, L, L] for each layer: what token i gives token j before the softmax, without any
    mask; layers may differ in the number of heads."""
    MEMORY = "memory"
    """tuple of tensors, detached: the state to pass to the batch that continues this batch's rows."""
    ACTIVATIONS = "activations"
    """tuple of two tensors [B, L, H]: a recurrent backbone's top output with and without output dropout."""

    @classmethod
    def of_head(cls, name: str) -> Signal:
        """The signal `name`, which a head computes and an objective of the same system reads."""
        return cls._added(name)


OVER_VOCABULARY = frozenset({Signal.MASKED_LOGITS, Signal.BOUNDARY_LOGITS, Signal.NEXT_LOGITS, Signal.TARGET_LOGITS})
"""Signals whose last dimension is the vocabulary."""
PER_ITEM = frozenset({Signal.LOGITS, Signal.SCORE, Signal.POOLED})
"""Signals of a labelled item as a whole, of the same shape for all, however many tokens it has."""


class Ability(StrEnum):
    """A property of a backbone that a head or a layout can require."""

    BIDIRECTIONAL = "bidirectional"
    """Each position attends to both sides."""
    CAUSAL = "causal"
    """Each position depends only on the positions before it, so that the backbone can be a language model."""
    TWO_STREAM = "two_stream"
    """A query stream predicts a token from its position and a permuted context, without seeing it (XLNet)."""
    ENCODER_DECODER = "encoder_decoder"
    """A decoder attends to an encoded source."""
    RECURRENT = "recurrent"
    """Reads from left to right with a recurrent state."""
    MEMORY = "memory"
    """Accepts and returns the state of earlier rows."""
    DISCRIMINATOR = "discriminator"
    """The architecture has its own head for replaced token detection (Clark et al. 2020)."""
    SEGMENT_PAIRS = "segment_pairs"
    """The architecture pools the first token, and has its own head for pairs of segments on it (Devlin et al. 2018)."""
    ONE_STACK = "one_stack"
    """One hidden state for each input token, from one stack of layers or a lookup table: what most heads build on."""
    LAYERED = "layered"
    """Its layers are one list, each reads the states [B, L, H] of the one before, and it can end after any of them."""
    WITHIN_DOCUMENTS = "within_documents"
    """Attention can be restricted to the documents of a packed row, so that each is read as if it were alone."""
    ATTENTION_SCORES = "attention_scores"
    """Layers attend by the scaled products of linear layers of their input, which the architecture names, alone."""
    VISIBILITY = "visibility"
    """Which tokens attend to which can be said for every pair of a row."""
    STATIC = "static"
    """One vector for each word, independent of its context."""
    PARAGRAPHS = "paragraphs"
    """Infers one vector for a whole text, with the vectors of its words frozen (Le & Mikolov 2014)."""
    PROTOTYPES = "prototypes"
    """Several vectors for each frequent word, between which its context decides (Huang et al. 2012)."""
    COUNTED = "counted"
    """Its tables are estimated from counts of a text; it has no parameter that learns by gradient."""
    FEATURES = "features"
    """Reads the vectors that other networks give each token."""
    TWO_LANGUAGE_MODELS = "two_language_models"
    """Its layers read from both sides without the sides meeting, so that each can be a language model."""
    CONTEXT_VECTORS = "context_vectors"
    """The state of a token is that of the words on its two sides, without the token itself (Melamud et al. 2016)."""
