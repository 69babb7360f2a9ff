"""The closed words between the parts: what a batch carries, what a network says, what a body can do.

A layout, a segmentation, a corruption and a head's encoding *provide* fields, a head *provides* signals, an objective
*needs* both; a head *needs* abilities that the backbone *offers*. Demand ⊆ supply is checked when a recipe is loaded. A new
word here is an architectural decision, not a convenience.

Shapes: B sequences in a batch, L tokens in a sequence, M predicted positions in the whole batch, T tokens in a target
sequence, V vocabulary, H hidden size, C classes, K choices.
"""

from __future__ import annotations

from enum import StrEnum


class Field(StrEnum):
    """A tensor in a batch."""

    INPUT_IDS = "input_ids"
    """int64 [B, L]: what the network reads."""
    ATTENTION_MASK = "attention_mask"
    """int64 [B, L]: 1 for a token, 0 for padding. Absent when nothing is padded."""
    TOKEN_TYPE_IDS = "token_type_ids"
    """int64 [B, L]: 0 in the first text, 1 in the second. Absent where the tokenizer does not tell them apart."""
    POSITION_IDS = "position_ids"
    """int64 [B, L]: where each token is said to stand. Absent when tokens stand where they are."""
    ORIGINAL_IDS = "original_ids"
    """int64 [B, L]: the tokens before corruption."""
    DOCUMENTS = "documents"
    """int64 [B, L]: the number of the document each token of a plain-text row belongs to; −1 for padding."""
    DOCUMENT_STARTS = "document_starts"
    """int64 [B, L]: 1 where a document begins in a row whose documents do not see each other, or the padding behind them. Absent
    where a row is read as one text."""
    WORD_STARTS = "word_starts"
    """int64 [B, L]: 1 where a token begins a word of the segmentation, 0 inside one."""
    MEMORY = "memory"
    """tuple of tensors: what the network remembers of the rows that this batch continues. Absent at the first batch."""
    ITEMS = "items"
    """int64 [B]: the number of each row's item among those of its stage, where rows are just those items."""
    MASKED_POSITIONS = "masked_positions"
    """int64 [M]: indices into the flattened [B·L] tokens, ascending."""
    MASKED_LABELS = "masked_labels"
    """int64 [M]: the token that stood at each masked position."""
    SPAN_EDGES = "span_edges"
    """int64 [M, 2]: for each masked position, the flattened positions just before and just after its span."""
    SPAN_OFFSETS = "span_offsets"
    """int64 [M]: place of each masked position in its span, 0 for the first."""
    PERMUTATION_MASK = "permutation_mask"
    """float32 [B, L, L]: 1 where token i must not see token j."""
    TARGET_MAPPING = "target_mapping"
    """float32 [B, T, L]: row t is the one-hot position of the t-th predicted token of its sequence."""
    REPLACED = "replaced"
    """int64 [B, L]: 1 where a generator's token stands for another; written by the objective that asks the generator."""
    PARTNER = "partner"
    """int64 [B]: the row that holds the other half of this row's passage; −1 where no passage spans both."""
    CENTERS = "centers"
    """int64 [N]: word-vector training: the middle word of each window."""
    CONTEXTS = "contexts"
    """int64 [N, W]: the words around each centre, −1 where a window has fewer."""
    NEGATIVES = "negatives"
    """int64 [N, K]: words drawn from the noise distribution for each centre."""
    LABELS = "labels"
    """int64 [B]: the class of each text, or the right choice of each question."""
    SCORES = "scores"
    """float32 [B]: the number each pair of texts is to be given."""
    TAG_LABELS = "tag_labels"
    """int64 [B, L]: the tag of each token that begins a word, −100 elsewhere."""
    ANSWERABLE = "answerable"
    """int64 [B, L]: 1 where a token is of the text in which the answer may stand, 0 in the question and in the frame."""
    SPAN_LABELS = "span_labels"
    """int64 [B, 2]: first and last token of the answer; 0, 0 where the row holds none."""
    CHOICES = "choices"
    """int64 [B, K]: 1 where a question has a choice, 0 where it has fewer than the widest of the batch."""
    TARGET_IDS = "target_ids"
    """int64 [B, T]: the text to be generated, −100 after its end."""


TOKEN_NUMBERS = frozenset({Field.MASKED_POSITIONS, Field.SPAN_EDGES})
"""Fields whose values count tokens from the first of the batch."""
ROW_NUMBERS = frozenset({Field.PARTNER})
"""Fields whose values count rows from the first of the batch; −1 names none."""
OF_MASKED = frozenset({Field.MASKED_POSITIONS, Field.MASKED_LABELS, Field.SPAN_EDGES, Field.SPAN_OFFSETS})
"""Fields with a value for each predicted position. Where none says which these are, a row has as many as any other."""
OF_WINDOWS = frozenset({Field.CENTERS, Field.CONTEXTS, Field.NEGATIVES})
"""Fields with a value for each of as many word windows as a batch happens to have. All others have one for each row."""


class Signal(StrEnum):
    """A tensor that a network says."""

    MASKED_LOGITS = "masked_logits"
    """[M, V]: vocabulary scores at the masked positions only."""
    BOUNDARY_LOGITS = "boundary_logits"
    """[M, V]: vocabulary scores of masked tokens, read from the edges of their spans."""
    NEXT_LOGITS = "next_logits"
    """[B, L, V]: vocabulary scores of the token that follows each position."""
    TARGET_LOGITS = "target_logits"
    """[B, T, V]: vocabulary scores of the text to be generated."""
    REPLACED_LOGITS = "replaced_logits"
    """[B, L]: how much each token looks replaced."""
    NOISE_LOGITS = "noise_logits"
    """[N, 1 + K]: scores of the true word and of the negatives."""
    PATH_LOGITS = "path_logits"
    """[N, D]: score of turning right at each inner node on the way to the word; 0 beyond the word's depth."""
    PATH_TURNS = "path_turns"
    """int64 [N, D]: the turn to take at each inner node: 1 right, 0 left, −100 beyond the word's depth."""
    POOLED = "pooled"
    """[B, H]: one vector for each sequence."""
    LOGITS = "logits"
    """[B, C]: class scores of each text; [B, K]: scores of the choices of each question."""
    SCORE = "score"
    """[B]: the number given to each text or pair."""
    TAG_LOGITS = "tag_logits"
    """[B, L, C]: tag scores of each token."""
    TAG_TRANSITIONS = "tag_transitions"
    """[C + 2, C + 2]: score of going from one tag to the next; the last two rows and columns are start and end."""
    SPAN_LOGITS = "span_logits"
    """[B, L, 2]: scores of each token as first and as last of the answer; −inf outside the context, but for token 0."""
    HIDDEN_STATES = "hidden_states"
    """tuple of layers + 1 tensors [B, L, H]: embeddings first, top layer last."""
    MEMORY = "memory"
    """tuple of tensors: what the network will remember when the next batch continues this one's rows. Detached."""
    ACTIVATIONS = "activations"
    """tuple of two tensors [B, L, H]: a recurrent body's top output with and without its dropout."""


class Ability(StrEnum):
    """What a body can do, so that a head may ask for it."""

    BIDIRECTIONAL = "bidirectional"
    """A position sees what stands on both of its sides."""
    CAUSAL = "causal"
    """A position sees only what precedes it, so that the body can be a language model."""
    TWO_STREAM = "two_stream"
    """A query stream predicts a token from its position and a permuted context, without seeing it (Yang et al. 2019)."""
    ENCODER_DECODER = "encoder_decoder"
    """A decoder that attends to an encoded source."""
    RECURRENT = "recurrent"
    """Reads left to right with a state."""
    MEMORY = "memory"
    """Takes and gives a memory of earlier rows."""
    DISCRIMINATOR = "discriminator"
    """Has a head of its own that tells replaced tokens (Clark et al. 2020)."""
    ONE_STACK = "one_stack"
    """One state for each token that is read, from one stack of layers or from none: what most heads are put upon."""
    WITHIN_DOCUMENTS = "within_documents"
    """Can be told where documents begin in a row, and then reads each as if it stood alone."""
    STATIC = "static"
    """One vector a word, whatever stands around it."""
