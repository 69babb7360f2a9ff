"""SIGKILL to the training process of recipes of lines, of channels, of features, and of models that are counted."""

from __future__ import annotations

from benchmarks.faults.kinds.kills import KillTraining


class KillLines(KillTraining):
    name = "kill_lines"
    description = "SIGKILL to the training process of stages of several lines"
    recipe = "lines"
    cases = 10


class KillChannels(KillTraining):
    name = "kill_channels"
    description = "SIGKILL to the training process of stages whose network reads a channel"
    recipe = "channels"
    cases = 10


class KillFeatures(KillTraining):
    name = "kill_features"
    description = "SIGKILL to the training process of stages that read another network, frozen or not"
    recipe = "features"
    cases = 10


class KillCounted(KillTraining):
    name = "kill_counted"
    description = "SIGKILL to the process that counts n-grams"
    recipe = "counted"
    cases = 10
