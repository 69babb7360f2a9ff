"""A row of every task family, as text, and what makes rows invalid."""

from __future__ import annotations

import math
from typing import Any

ROWS: dict[str, dict[str, Any]] = {
    "text_classification": {"text": "a fine film", "label": "positive"},
    "label_sets": {"text": "area of a circle", "labels": ["real number", "array"]},
    "pair_classification": {"text_a": "it rains", "text_b": "it is wet", "label": "entailment"},
    "pair_regression": {"text_a": "it rains", "text_b": "it is wet", "label": 3.35},
    "tagging": {
        "tokens": ["Ada", "Lovelace", "of", "London", ";", "中", "国"],
        "tags": ["B-person", "I-person", "O", "B-place", "O", "B-place", "I-place"],
    },
    "few_shot_tagging": {
        "tokens": ["Ada", "of", "London"], "tags": ["B-person", "O", "B-place"],
        "support_tokens": [["Grace", "Hopper"], ["in", "Rome", "and", "Bonn"]],
        "support_tags": [["B-person", "I-person"], ["O", "B-place", "O", "B-place"]],
    },
    "span_extraction": {
        "context": "Ada was born in London.", "question": "Where?", "answer_texts": ["London"], "answer_starts": [16]
    },
    "translated_spans": {
        "context": "Ada wurde in London geboren.", "question": "Wo?", "answer_texts": ["London"], "answer_starts": [13],
        "source_context": "Ada was born in London.", "source_question": "Where?",
    },
    "multiple_choice": {"context": "It rains.", "question": "And?", "choices": ["It is wet.", "It is dry."],
    "answer": 1},
    "text_generation": {"source": "Guten Tag", "target": "good day"},
    "span_pair_classification": {
        "context": "Ada met Grace when she came.", "span1": "Grace", "span1_index": 8, "span2": "she",
        "span2_index": 19,
        "label": "true",
    },
    "word_senses": {
        "context": "They sat on the bank.", "word": "bank", "word_index": 16,
        "definitions": ["sloping land beside water", "a house that keeps money"], "answer": 0, "unseen": 1,
    },
    "minimal_pairs": {
        "sentences": ["They walks.", "They walk."], "answer": 1, "phenomenon": "agreement", "paradigm": "plural"
    },
    "dependency_parsing": {
        "sentence": "Ada wrote it.", "words": ["Ada", "wrote", "it", "."], "heads": [2, 0, 2, 2],
        "relations": ["nsubj:outer", "root", "obj", "punct"],
    },
    "link_prediction": {
        "head": "Q7259", "relation": "P19", "tail": "Q84", "head_name": "Ada Lovelace",
        "head_description": "mathematician",
        "relation_name": "place of birth", "tail_name": "London", "tail_description": "", "other_heads": "Q1\nQ2",
        "other_tails": "",
    },
    "table_questions": {
        "question": "Who came first?", "table_id": "t1", "header": ["Name", "Place"], "rows": [["Ada", "1"], ["Grace",
        "2"]],
        "answers": ["Ada"],
    },
    "layout_tagging": {
        "tokens": ["Full", "name:", "Ada"], "boxes": [[0, 0, 9, 9], [10, 0, 30, 9], [31, 0, 60, 9]],
        "tags": ["B-question", "I-question", "B-answer"], "page": [100, 50],
    },
    "word_analogies": {"relation": "capital", "a": "Paris", "b": "France", "c": "Rome", "d": "Italy"},
}  # fmt: skip
TEXT = {
    "text_classification": "text: a fine film label:",
    "label_sets": "text: area of a circle labels:",
    "pair_classification": "first: it rains second: it is wet label:",
    "pair_regression": "first: it rains second: it is wet similarity:",
    "tagging": "text: Ada Lovelace of London ; 中国 entities:",
    "few_shot_tagging": "example: Grace Hopper entities: person: Grace Hopper example: in Rome and Bonn entities: "
    "place: Rome; place: Bonn text: Ada of London entities:",
    "span_extraction": "question: Where? context: Ada was born in London. answer:",
    "translated_spans": "translated question: Where? translated context: Ada was born in London. question: Wo? "
    "context: Ada wurde in London geboren. answer:",
    "multiple_choice": "question: And? choice1: It is wet. choice2: It is dry. context: It rains. answer:",
    "text_generation": "text: Guten Tag output:",
    "span_pair_classification": "text: Ada met *Grace* when *she* came. first: Grace second: she label:",
    "word_senses": "word: bank definition1: sloping land beside water definition2: a house that keeps money "
    "context: They sat on the *bank*. answer:",
    "minimal_pairs": "sentence1: They walks. sentence2: They walk. acceptable:",
    "dependency_parsing": "words: Ada wrote it . tree:",
    "link_prediction": "head: Ada Lovelace, mathematician relation: place of birth tail:",
    "table_questions": "question: Who came first? table: Name | Place row 1: Ada | 1 row 2: Grace | 2 answer:",
    "layout_tagging": "text: Full name: Ada entities:",
    "word_analogies": "Paris : France :: Rome :",
}
NOTES = {"phenomenon", "paradigm", "relation", "page", "table_id", "head", "head_description"}
"""Columns that say something of an example and are no words of it."""
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("text_classification", {"text": "  "}, "the column 'text' is empty"),
    ("text_classification", {"label": None}, "the column 'label' is empty"),
    ("label_sets", {"text": " "}, "the column 'text' is empty"),
    ("label_sets", {"labels": ["array", ""]}, "the column 'labels' holds an empty label"),
    ("label_sets", {"labels": ["array", "array"]}, "the column 'labels' holds 'array' twice"),
    ("pair_classification", {"text_b": None}, "the column 'text_b' is empty"),
    ("pair_regression", {"text_a": ""}, "the column 'text_a' is empty"),
    ("pair_regression", {"label": math.nan}, "'label' holds nan, expected a finite number"),
    ("tagging", {"tokens": []}, "the column 'tokens' is empty"),
    ("tagging", {"tags": ["O"]}, "'tags' holds 1 tags for 7 tokens"),
    ("tagging", {"tags": ["O", "I-person", *"OOOOO"]}, "'I-person' after 'O', number 1: in IOB2 it begins with B-"),
    ("tagging", {"tags": ["B-x", "I-y", *"OOOOO"]}, "'I-y' after 'B-x'"),
    ("tagging", {"tags": ["E-x", *"OOOOOO"]}, "expected O, B-… or I-…"),
    ("few_shot_tagging", {"tags": ["O"]}, "'tags' holds 1 tags for 3 tokens"),
    ("few_shot_tagging", {"support_tokens": []}, "the column 'support_tokens' is empty"),
    ("few_shot_tagging", {"support_tags": [["O", "O"]]}, "'support_tags' holds 1 sentences, 'support_tokens' 2"),
    ("few_shot_tagging", {"support_tags": [["O"], list("OOOO")]}, "support sentence 0: the column 'tags' holds 1 tags"),
    ("few_shot_tagging", {"tags": ["B-thing", "O", "O"]}, "holds the type 'thing', which no support sentence has"),
    ("span_extraction", {"question": ""}, "the column 'question' is empty"),
    ("span_extraction", {"answer_starts": [15]}, "'London' is not at character 15 of 'context'"),
    ("span_extraction", {"answer_starts": []}, "'answer_starts' holds 0 offsets for 1 answers"),
    ("span_extraction", {"answer_texts": [""]}, "holds an empty answer"),
    ("translated_spans", {"answer_starts": [16]}, "'London' is not at character 16 of 'context'"),
    ("translated_spans", {"source_question": " "}, "the column 'source_question' is empty"),
    ("multiple_choice", {"answer": 2}, "'answer' holds 2, expected an index from 0 to 1"),
    ("multiple_choice", {"choices": ["one"]}, "'choices' holds 1, expected two or more"),
    ("multiple_choice", {"choices": ["one", " "]}, "an empty choice"),
    ("multiple_choice", {"question": "", "context": None}, "are both empty"),
    ("text_generation", {"target": ""}, "the column 'target' is empty"),
    ("span_pair_classification", {"span1": ""}, "the column 'span1' is empty"),
    ("span_pair_classification", {"span2_index": 20}, "'span2' holds 'she', which is not at character 20"),
    ("span_pair_classification", {"span1_index": -1}, "'span1' holds 'Grace', which is not at character -1"),
    ("word_senses", {"context": ""}, "the column 'context' is empty"),
    ("word_senses", {"word_index": 15}, "'word' holds 'bank', which is not at character 15"),
    ("word_senses", {"definitions": ["one"]}, "'definitions' holds 1, expected two or more"),
    ("word_senses", {"definitions": ["one", " "]}, "an empty definition"),
    ("word_senses", {"definitions": ["one", "one"]}, "holds a definition twice"),
    ("word_senses", {"answer": 2}, "'answer' holds 2, expected an index from 0 to 1"),
    ("minimal_pairs", {"sentences": ["They walk."] * 2}, "holds 'They walk.' twice"),
    ("minimal_pairs", {"sentences": ["They walk.", " "]}, "an empty sentence"),
    ("minimal_pairs", {"answer": 2}, "'answer' holds 2, expected 0 or 1"),
    ("dependency_parsing", {"words": []}, "the column 'words' is empty"),
    ("dependency_parsing", {"heads": [2, 0, 2]}, "the column 'heads' holds 3 for 4 words"),
    ("dependency_parsing", {"heads": [2, 0, 2, 5]}, "holds 5 for word 4, expected 0 (the root) to 4"),
    ("dependency_parsing", {"heads": [2, 0, 2, -1]}, "holds -1 for word 4"),
    ("dependency_parsing", {"heads": [2, 3, 2, 2]}, "has 0 roots"),
    ("dependency_parsing", {"heads": [0, 0, 2, 2]}, "has 2 roots (words whose head is 0): words 1, 2; a tree has one"),
    ("dependency_parsing", {"heads": [2, 0, 4, 3]}, "contains a cycle: word 3 → 4 → 3"),
    ("dependency_parsing", {"heads": [1, 0, 2, 2]}, "contains a cycle: word 1 → 1"),
    ("dependency_parsing", {"relations": ["nsubj", "root", "", "punct"]}, "'relations' holds nothing for word 3"),
    ("link_prediction", {"tail": ""}, "the column 'tail' is empty"),
    ("link_prediction", {"tail_name": ""}, "the column 'tail' holds 'Q84', which has no name in 'entities'"),
    ("link_prediction", {"relation_name": ""}, "the column 'relation' holds 'P19', which has no name in 'relations'"),
    ("table_questions", {"header": []}, "'table_id' holds 't1', which is not in 'tables'"),
    ("table_questions", {"rows": [["Ada", "1"], ["Grace"]]}, "the column 'rows' holds 1 cells in row 2, the header 2"),
    ("table_questions", {"answers": []}, "the column 'answers' holds [], expected at least one text"),
    ("layout_tagging", {"tags": ["B-question"]}, "'tags' holds 1 tags for 3 tokens"),
    ("layout_tagging", {"boxes": [[0, 0, 9, 9]]}, "'boxes' holds 1 boxes for 3 tokens"),
    ("layout_tagging", {"boxes": [[0, 0, 9]] * 3}, "holds [0, 0, 9], number 0: expected x0, y0, x1, y1"),
    ("layout_tagging", {"boxes": [[9, 0, 8, 9]] * 3}, "holds [9, 0, 8, 9], number 0: x1 < x0"),
    ("layout_tagging", {"boxes": [[0, 9, 9, 8]] * 3}, "number 0: y1 < y0"),
    ("layout_tagging", {"boxes": [[-1, 0, 9, 9]] * 3, "page": []}, "holds [-1, 0, 9, 9], number 0, outside the page"),
    ("layout_tagging", {"page": [50, 50]}, "holds [31, 0, 60, 9], number 2, outside the page of [50, 50]"),
    ("layout_tagging", {"page": [50]}, "the column 'page' holds [50], expected its width and height"),
    ("word_analogies", {"d": " "}, "the column 'd' is empty"),
]
