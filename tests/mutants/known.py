"""Mistakes that the tests must see: a text of the code, what it would be by mistake, and the tests that fail then."""

from __future__ import annotations

from dataclasses import dataclass

PUBLISHING = "tests/pipelines/lineage/test_publishing.py"
WINDOW = "tests/pipelines/corpora/test_leakage_window.py"
NEAR = "tests/pipelines/corpora/test_near_duplicates.py"
EXPORT = "tests/pipelines/training/test_export.py"
CLIPPING = "tests/pipelines/training/test_clipping.py"
CLAIMS = "tests/tasks/records/test_claims.py"
CLAIM_PAGES = "tests/tasks/records/test_claim_pages.py"
CHANCE = "tests/pipelines/judging/claims/test_chance.py"
WHOLE = f"{PUBLISHING}::test_an_artifact_is_flushed_whole_and_then_renamed_into_its_place"
NAMES = f"{PUBLISHING}::test_the_names_in_subfolders_are_on_the_disk_before_the_record"
VOUCHES = f"{PUBLISHING}::test_a_record_vouches_for_nothing_that_is_not_on_the_disk"
BEST = f"{EXPORT}::test_the_weights_of_the_best_validation_are_left_and_of_two_the_earlier"
FORMS = "tests/pipelines/judging/claims/test_forms.py::test_greater_is_the_paired_difference_number_for_number"
SIDES = f"{CLAIMS}::test_a_record_says_which_side_is_which_and_who_won"
FOLDERS = "tests/pipelines/safety/test_model_folders.py"
HOSTILE = "tests/safety/test_hostile_checkpoints.py"
VECTORS = "tests/pipelines/training/test_vector_channels.py"
PROJECTED = "tests/pipelines/parts/strategies/test_projected_attention.py"
PAIRS = "tests/pipelines/parts/corruptions/test_next_sentence.py"
COUNTS = "tests/reference/test_kneser_ney.py"
PAIRS_LOSS = "tests/reference/test_next_sentence.py::test_the_pairs_loss_in_float64"


@dataclass(frozen=True)
class Mutant:
    """One mistake."""

    file: str
    old: str
    """Stands exactly once in `file`."""
    new: str
    tests: tuple[str, ...]
    """Each of them fails."""


KNOWN = {
    "artifact copied into its place": Mutant(
        "pipelines/lineage/store.py",
        "        os.replace(work, target)\n",
        "        shutil.copytree(work, target)\n        shutil.rmtree(work)\n",
        (WHOLE,),
    ),
    "files of an artifact not flushed": Mutant(
        "pipelines/lineage/store.py",
        "                    flush(path)\n",
        "",
        (WHOLE, VOUCHES),
    ),
    "names in an artifact not flushed": Mutant(
        "pipelines/lineage/store.py",
        "        flush(work)\n",
        "",
        (WHOLE,),
    ),
    "names in subfolders of an artifact not flushed": Mutant(
        "pipelines/lineage/store.py",
        "                flush(work / folder)\n",
        "                pass\n",
        (NAMES,),
    ),
    "name of an artifact not flushed": Mutant(
        "pipelines/lineage/store.py",
        "        flush(self.root)\n",
        "",
        (WHOLE,),
    ),
    "record not flushed": Mutant(
        "pipelines/lineage/store.py",
        "work / SCRATCH / RECORD, flushed=True)",
        "work / SCRATCH / RECORD)",
        (WHOLE, VOUCHES),
    ),
    "no fsync at all": Mutant(
        "pipelines/lineage/disk.py",
        "        os.fsync(descriptor)\n",
        "        pass\n",
        (WHOLE, VOUCHES, f"{PUBLISHING}::test_a_file_gets_its_name_in_one_rename[True]"),
    ),
    "file copied to its name": Mutant(
        "pipelines/lineage/disk.py",
        "        os.replace(temporary, path)\n",
        "        path.write_bytes(temporary.read_bytes())\n        temporary.unlink()\n",
        (f"{PUBLISHING}::test_a_file_gets_its_name_in_one_rename",),
    ),
    "leakage window of 14 words": Mutant(
        "pipelines/corpora/settings/overlap.py",
        "words: int = Field(default=13, ge=2)",
        "words: int = Field(default=14, ge=2)",
        (f"{WINDOW}::test_a_dataset_without_settings_looks_at_runs_of_thirteen_words[13-True]",),
    ),
    "leakage window one word longer than asked for": Mutant(
        "pipelines/corpora/leaks/evaluation_index.py",
        "OverlapIndex(texts, rules.words, rules.unit)",
        "OverlapIndex(texts, rules.words + 1, rules.unit)",
        (f"{WINDOW}::test_a_dataset_without_settings_looks_at_runs_of_thirteen_words[13-True]",),
    ),
    "near copies from six standard errors below": Mutant(
        "pipelines/corpora/duplicates/minhash.py",
        "self.threshold - 2 * math.sqrt(",
        "self.threshold - 6 * math.sqrt(",
        (f"{NEAR}::test_texts_well_below_the_threshold_are_no_near_copies",),
    ),
    "near copies without a limit": Mutant(
        "pipelines/corpora/duplicates/near_duplicates.py",
        "yield similarity(signatures[0], signatures[1]) >= least",
        "yield similarity(signatures[0], signatures[1]) >= 0.5",
        (f"{NEAR}::test_texts_well_below_the_threshold_are_no_near_copies",),
    ),
    "last weights instead of the best": Mutant(
        "pipelines/training/assembly/export.py",
        "    weights = last if best is None or best.score is None else best.read(checkpoints)\n",
        "    weights = last\n",
        (f"{BEST}[scores0-1]", f"{EXPORT}::test_a_trained_classifier_answers_as_at_its_best_validation"),
    ),
    "best weights read and not restored": Mutant(
        "pipelines/training/assembly/export.py",
        "        network.load_state_dict(weights)\n",
        "        pass\n",
        (f"{BEST}[scores0-1]",),
    ),
    "weights of the worst validation kept": Mutant(
        "pipelines/training/checkpoints/best_weights.py",
        "score <= self.score",
        "score >= self.score",
        (f"{BEST}[scores0-1]", f"{BEST}[scores1-2]"),
    ),
    "gradients not clipped on plain torch": Mutant(
        "pipelines/training/loop/clipping.py",
        "float(norm) > limit:",
        "float(norm) > 1e30:",
        (f"{CLIPPING}::test_plain_torch_reads_gradients_of_the_norm_that_the_recipe_allows",),
    ),
    "sides of a comparison swapped": Mutant(
        "pipelines/judging/claims/pair.py",
        "return ComparedSide(self.system), ComparedSide(self.baseline)",
        "return ComparedSide(self.baseline), ComparedSide(self.system)",
        (f"{CLAIMS}::test_a_comparison_goes_from_the_baseline_to_the_system",),
    ),
    "sides of a record swapped": Mutant(
        "tasks/records/claims.py",
        'zip(("system", "baseline"), measured.claim.form.sides(), strict=True)',
        'zip(("baseline", "system"), measured.claim.form.sides(), strict=True)',
        (SIDES,),
    ),
    "recorded effect negated": Mutant(
        "tasks/records/claims.py",
        '"difference": judged["effect"],',
        '"difference": -judged["effect"],',
        (SIDES,),
    ),
    "less counted as better where more is": Mutant(
        "pipelines/judging/claims/judgement.py",
        "-weight if lower else weight",
        "weight if lower else -weight",
        (FORMS,),
    ),
    "intervals of an order each for itself": Mutant(
        "pipelines/judging/claims/judgement.py",
        "(1 - CONFIDENCE) / len(contrasts)",
        "(1 - CONFIDENCE)",
        ("tests/pipelines/judging/claims/test_forms.py::test_every_neighbour_of_an_order_counts",),
    ),
    "columns of the page exchanged": Mutant(
        "tasks/records/claims_page.py",
        """f"{record['baseline']['stage']} {record['baseline'][metric]['mean']:.3f}",""",
        """f"{record['baseline']['stage']} {record['system'][metric]['mean']:.3f}",""",
        (f"{CLAIM_PAGES}::test_the_page_shows_the_system_minus_the_baseline",),
    ),
    "an effect of the terminal negated": Mutant(
        "flows/cli/claim.py",
        """{difference['difference']:+.3f} {interval}""",
        """{-difference['difference']:+.3f} {interval}""",
        (f"{CLAIM_PAGES}::test_the_terminal_shows_the_same",),
    ),
    "the system's figure with the sign of the baseline's": Mutant(
        "pipelines/judging/claims/pair.py",
        "return (-1.0, baseline), (1.0, system)",
        "return (1.0, baseline), (-1.0, system)",
        ("tests/pipelines/judging/claims/test_signs.py::test_a_form_holds_for_its_claim_and_fails_for_the_opposite",),
    ),
    "the worse constant answer called chance": Mutant(
        "pipelines/judging/claims/chance.py",
        "chance = max(constant, key=score)",
        "chance = min(constant, key=score)",
        (f"{CHANCE}::test_the_most_frequent_test_class_binds_where_the_training_table_is_balanced",),
    ),
    "both sides asked to be above chance": Mutant(
        "pipelines/judging/claims/chance.py",
        "if max(lows) <= margin:",
        "if min(lows) <= margin:",
        (f"{CHANCE}::test_one_side_above_chance_is_enough",),
    ),
    "draws taken for seeds": Mutant(
        "pipelines/judging/certainty/variance_components.py",
        "of_draws.append((weight**2 * _between(u.mean(axis=1)), draws - 1))",
        "of_draws.append((0.0, draws - 1))",
        ("tests/pipelines/judging/certainty/test_contrasts.py::test_one_draw_hides_the_variance_between_draws",),
    ),
    "the worst point of a grid chosen": Mutant(
        "tasks/records/tuning.py",
        "stage: max(scored, key=lambda one: one.validation).settings",
        "stage: min(scored, key=lambda one: one.validation).settings",
        ("tests/tasks/records/test_tuning.py::test_each_side_has_its_best_point_by_the_figure_of_the_claim",),
    ),
    "random weights credited with what their shape read": Mutant(
        "tasks/records/fairness.py",
        """shape = {START} if model.provenance.identity.get("untrained") else set[str]()""",
        """shape = set[str]()""",
        ("tests/tasks/records/test_fairness.py::test_what_stages_before_read_counts_but_not_a_shape",),
    ),
    "tied weights lost when saved": Mutant(
        "pipelines/training/assembly/export.py",
        "    network.save_pretrained(out)\n",
        "    network.config.tie_word_embeddings = False\n    network.save_pretrained(out)\n",
        (f"{EXPORT}::test_tied_weights_are_one_tensor_before_and_after",),
    ),
    "a random segment of the same document": Mutant(
        "pipelines/parts/corruptions/next_sentence.py",
        "        others = (begins > last) | (ends < first)\n",
        "        others = ~np.eye(len(rows), dtype=np.bool_)\n",
        (f"{PAIRS}::test_a_second_segment_continues_the_first_or_is_another_documents",),
    ),
    "rows without a pair counted": Mutant(
        "pipelines/parts/objectives/next_sentence.py",
        '        return {"next_sentence": int((batch[Field.SEGMENT_LABELS] >= 0).sum())}\n',
        '        return {"next_sentence": len(batch[Field.SEGMENT_LABELS])}\n',
        (PAIRS_LOSS,),
    ),
    "a repetition inside a repeated group accepted": Mutant(
        "pipelines/safety/model_folders/expressions.py",
        "        if most > 1 and item.repeats:\n",
        "        if most > SHORT + 1 and item.repeats:\n",
        (f"{FOLDERS}::test_expressions_that_may_never_end_do_not",),
    ),
    "a key of a header accepted twice": Mutant(
        "pipelines/safety/model_folders/tensor_files.py",
        "    if len(result) != len(pairs):\n",
        "    if len(result) > len(pairs):\n",
        (f"{HOSTILE}::test_a_hostile_folder_is_refused_by_whatever_opens_it",),
    ),
    "cells of Prefect's tables live": Mutant(
        "tasks/display/artifacts.py",
        "inert(redacted(str(value)))\n",
        "redacted(str(value))\n",
        ("tests/pipelines/safety/test_markdown.py::test_tables_links_and_descriptions_of_artifacts_show_text",),
    ),
    "a pruned n-gram that keeps part of its count": Mutant(
        "pipelines/parts/estimates/kneser_ney.py",
        "self.tables[number - 1].counts[part] <= rarest, counts[part], taken)",
        "self.tables[number - 1].counts[part] < rarest, counts[part], taken)",
        (f"{COUNTS}::test_pruned_tables_are_the_formulas_and_sum_to_one",),
    ),
    "a look-up that backs off without its weight": Mutant(
        "pipelines/networks/ngram.py",
        "torch.where(context >= 0, below.backoffs[context.clamp(min=0)], 0)",
        "torch.where(context > 0, below.backoffs[context.clamp(min=0)], 0)",
        (f"{COUNTS}::test_looking_a_token_up_is_the_distributions_value",),
    ),
    "classes that count alike whatever their size": Mutant(
        "pipelines/networks/class_softmax.py",
        " * (len(inside) / len(words))\n",
        " / len(sizes)\n",
        ("tests/reference/test_class_softmax.py::test_the_loss_is_the_mean_of_what_it_gives_the_words",),
    ),
    "a target among its own samples": Mutant(
        "pipelines/parts/objectives/sampled_softmax.py",
        ".masked_fill(targets.unsqueeze(1) == samples, -torch.inf)\n",
        "\n",
        ("tests/reference/test_class_softmax.py::test_a_sampled_softmax_is_the_papers_estimate_of_the_softmax",),
    ),
    "modules of one line that act in all": Mutant(
        "pipelines/networks/line_modules.py",
        "self._backbone is None or _COMPUTING.get() is self._backbone",
        "True",
        (f"{PROJECTED}::test_a_line_computes_with_its_own_and_the_other_as_if_it_had_none",),
    ),
    "vectors of a packed row as whole numbers": Mutant(
        "pipelines/training/batches/token_channels.py",
        "self.channel.padding, dtype=self.channel.kind)",
        "self.channel.padding, dtype=np.int64)",
        (f"{VECTORS}::test_rows_of_every_layout_hold_the_vectors_of_their_tokens",),
    ),
    "states of a token without its last part": Mutant(
        "pipelines/models/text_states.py",
        'np.searchsorted(offsets[:, 0], spans[:, 1], side="left")',
        'np.searchsorted(offsets[:, 1], spans[:, 1], side="left")',
        ("tests/reference/test_text_states.py::test_a_token_has_the_mean_of_those_that_share_its_characters",),
    ),
}
