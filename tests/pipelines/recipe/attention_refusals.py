"""Attention patterns and knowledge that cannot be combined with the rest of a stage, and what the refusal names."""

from __future__ import annotations

from tests.pipelines.recipe.recipe_texts import GPT, Refused, labelled, written

ATTENTION = {
    "a pattern on a body whose scores cannot be restricted": Refused(
        written(
            "    attention: within_documents",
            tokenizer="xlnet_unigram",
            backbone="{name: transformer, architecture: xlnet}",
        ),
        (
            ":16: stages.general.attention: within_documents",
            "the attention of this backbone (transformer xlnet)",
            "backbones that fit: transformer albert, transformer bert, transformer electra, transformer ",
        ),
    ),
    "a pattern over types that no part gives": Refused(
        written("    attention: sequence_to_sequence"),
        (
            ":16: stages.general.attention",
            "sequence_to_sequence needs token_type_ids, which no part of this stage provides",
            "parts that do: discourse_markers, next_sentence, query_relevance, segment_order, ",
        ),
    ),
    "a visible matrix without knowledge": Refused(
        labelled(attention="visible_matrix"),
        (
            "stages.answer.attention",
            "visible_matrix needs branches, entities, which no part of this stage provides",
            "parts that do: knowledge: triples",
        ),
    ),
    "knowledge that no pattern reads": Refused(
        labelled(knowledge="{name: triples, file: recipes/knowledge/scientific_terms.tsv}"),
        ("stages.answer.knowledge", "triples injects tokens", "set attention: visible_matrix"),
    ),
    "knowledge without its file": Refused(
        labelled(knowledge="{name: triples, file: nowhere.tsv}", attention="visible_matrix"),
        ("stages.answer.knowledge", "triples: there is no file nowhere.tsv; give a path relative to"),
    ),
    "knowledge in a file that holds none": Refused(
        labelled(knowledge="{name: triples, file: recipes/kbert.yaml}", attention="visible_matrix"),
        ("stages.answer.knowledge", "recipes/kbert.yaml:1: expected subject, predicate and object"),
    ),
    "knowledge on plain text": Refused(
        written("    knowledge: {name: triples, file: recipes/knowledge/scientific_terms.tsv}"),
        ("stages.general.knowledge", "triples is injected into labelled examples, and this stage reads plain text"),
    ),
    "a teacher that reads otherwise": Refused(
        labelled(
            "  small: {like: answer, kind: compress, start: answer, teacher: answer, objective: match_logits, ",
            "          compression: select_layers, attention: left_to_right}",
        ),
        ("stages.small.teacher", "answer reads its rows with no attention pattern", "with attention left_to_right"),
    ),
    "a conversion that reads tokens alone": Refused(
        labelled(
            "  int8: {like: answer, kind: compress, start: answer, compression: dynamic_int8, objective: [],",
            "         attention: left_to_right}",
        ),
        ("stages.int8.compression", "dynamic_int8 writes a network that reads tokens and their mask alone"),
    ),
    "a conversion of what reads rows under a mask of its head": Refused(
        labelled(
            "  int8: {like: answer, kind: compress, start: answer, compression: dynamic_int8, objective: []}",
            head="masked_target",
            objective="masked_target",
        ),
        ("stages.int8.compression", "reads tokens and their mask alone, and this one is trained with head: masked_tar"),
    ),
    "a pattern for a head that has its own": Refused(
        labelled(head="masked_target", objective="masked_target", attention="left_to_right"),
        (":23: stages.answer.attention", "masked_target decides itself which tokens", "leave left_to_right out"),
    ),
    "masked targets of a head that has none": Refused(
        labelled(head="copied_decoder", objective="masked_target"),
        ("stages.answer.objective", "masked_target needs target_starts", "parts that do: masked_target"),
    ),
    "a target of a type that the backbone does not have": Refused(
        labelled(head="{name: masked_target, types: [4, 5]}", objective="masked_target"),
        ("stages.answer.head", "masked_target writes 6 token types, and the backbone (transformer bert) has 2; raise"),
    ),
    "masked targets on a backbone that reads from the left": Refused(
        labelled(head="masked_target", objective="masked_target", general=GPT),
        ("stages.answer.head", "masked_target needs a backbone that is bidirectional", "backbones that fit: transf"),
    ),
    "a probe of rows that are read under a mask": Refused(
        written(
            "    attention: left_to_right",
            "  probe: {kind: probe, start: general, corpus: task, probes: linear, budget: {length: 32}}",
        ),
        ("stages.probe.start", "stage 'general' reads its rows with attention: left_to_right"),
    ),
    "more token types than the backbone has": Refused(
        written(corruption="[{name: token_types, types: [4, 5]}, token_mask]"),
        (":11: stages.general.corruption", "token_types writes 6 token types", "(transformer bert) has 2"),
    ),
    "scores of attention of a body that names none": Refused(
        labelled("  taught: {like: answer, teacher: answer, objective: match_attention}", general=GPT),
        (
            ":24: ",
            "match_attention needs attention_scores, which sequence_classification provides on a backbone that is "
            "attention_scores, and this one (transformer gpt2) is not; backbones that fit: transformer bert, "
            "transformer electra, transformer mobilebert, transformer roberta",
        ),
    ),
    "scores of attention of a teacher that names none": Refused(
        labelled(
            "  other: {like: general, backbone: {name: transformer, architecture: xlnet}, tokenizer: wordpiece}",
            "  teacher: {kind: finetune, start: other, corpus: task, head: sequence_classification, strategy: full,",
            "    objective: cross_entropy, budget: {epochs: 1, length: 64}}",
            "  taught: {like: answer, teacher: teacher, objective: match_attention}",
        ),
        (
            ":27: ",
            "match_attention matches attention_scores, which sequence_classification provides on a backbone that is "
            "attention_scores, and that of teacher (transformer xlnet) is not; backbones that fit: transformer bert",
        ),
    ),
}
