"""Blocks are recognised by their bytecode, so an unknown version of transformers is left alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from transformers import BertConfig, BertForMaskedLM

from pipelines.parts.accelerators import Accelerator, cpu_kernels, installed_accelerators, versions


@pytest.fixture
def network() -> BertForMaskedLM:
    config = BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64)
    return BertForMaskedLM(config)


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A version of transformers that nobody has compared."""
    cpu_kernels.is_tested_version.cache_clear()
    monkeypatch.setattr(cpu_kernels, "version", lambda name: "5.99.1")
    yield
    cpu_kernels.is_tested_version.cache_clear()


def test_an_unknown_version_is_reported_once_and_no_module_is_replaced(
    unknown: None, network: BertForMaskedLM, compiled: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = [type(module) for module in network.modules()]
    accelerator = Accelerator.model_validate("cpu_kernels")
    with caplog.at_level(logging.WARNING):
        assert not accelerator.accelerate([network], compiled)
        assert not accelerator.accelerate([network], compiled)
    assert [type(module) for module in network.modules()] == before
    (warning,) = caplog.records
    assert "5.99.1" in warning.getMessage() and cpu_kernels.TESTED_VERSIONS[0] in warning.getMessage()


def test_the_installed_version_is_known_and_its_blocks_are_replaced(network: BertForMaskedLM, compiled: Path) -> None:
    before = [type(module) for module in network.modules()]
    (accelerator,) = installed_accelerators()
    assert accelerator.applies("cpu") and not accelerator.applies("gpu")
    assert accelerator.accelerate([network], compiled)
    assert [type(module) for module in network.modules()] != before


def test_its_version_is_its_identity() -> None:
    assert versions() == {"cpu_kernels": cpu_kernels.CpuKernels.version}
