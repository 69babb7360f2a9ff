"""Tests of an accelerator are collected only where it is installed: without its folder everything else still works."""

from __future__ import annotations

from pathlib import Path

from tests.steps import ROOT

ACCELERATORS = ROOT / "pipelines" / "parts" / "accelerators"
collect_ignore = [
    folder.name
    for folder in Path(__file__).parent.iterdir()
    if folder.is_dir() and not (ACCELERATORS / folder.name / "__init__.py").exists()
]
