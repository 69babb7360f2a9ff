"""Augmentations that do not fit their stage: what is refused, and what the message must say."""

from __future__ import annotations

from tests.pipelines.recipe.recipe_texts import Refused, labelled, written

AUGMENTATION = {
    "augmentation of plain text": Refused(
        written("  more: {like: general, augmentation: {attack: letter_case}}"),
        (":16: stages.more.augmentation", "changes labelled examples, and this stage reads plain text", "token_mask"),
    ),
    "augmentation that might change the answer": Refused(
        labelled(augmentation="{attack: distractor, rate: 0.1}"),
        (
            ":23: stages.answer.augmentation: distractor could change the right answer in text_classification",
            "attacks that fit: ",
            "swapped_letters",
        ),
        "text_classification",
    ),
    "augmentation in another language": Refused(
        labelled(augmentation="[{attack: letter_case}, {attack: homophones, rate: 0.1}]"),
        (":23: ", "homophones is for zh, and this dataset's language is en; attacks that fit: ", "letter_case"),
        "text_classification",
        "en",
    ),
    "augmentation without its file": Refused(
        labelled(augmentation="{attack: {name: nearest_words, vectors: nowhere.txt}}"),
        (":23: ", "augmentation: nearest_words: there is no file nowhere.txt; give a path relative to"),
    ),
    "augmentation without training": Refused(
        labelled(
            "  small: {kind: compress, start: answer, corpus: task, head: sequence_classification,",
            "    compression: select_layers, augmentation: {attack: letter_case}}",
        ),
        (":25: ", "stages.small.augmentation: this changes training examples, and this stage does not train"),
    ),
    "augmentation of more than all words": Refused(
        labelled(augmentation="{attack: letter_case, rate: 1.5}"),
        (":23: stages.answer.augmentation", "rate", "less than or equal to 1"),
    ),
    "augmentation of an unknown kind": Refused(
        labelled(augmentation="{attack: leter_case}"),
        (":23: stages.answer.augmentation", "no attack is called 'leter_case'. Did you mean 'letter_case'?"),
    ),
}
