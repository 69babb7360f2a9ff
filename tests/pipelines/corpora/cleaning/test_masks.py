"""Masks: what is found, what only looks like it, and that nothing is left behind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pipelines.corpora.cleaning import Cleaner, Mask
from tests.contracts.families import members
from tests.small_corpus import MANY, documents

MASKS = sorted(name for name, member in members("cleaning").items() if issubclass(member, Mask))


def mask(name: str, text: str) -> tuple[str, int]:
    found = Cleaner.model_validate(name)
    assert isinstance(found, Mask)
    return found.make_mask()(text)


FOUND = {
    "email": ["me@example.org", "a.b+c@mail.example.co.uk", "USER_1@EXAMPLE.COM", "x@sub-domain.museum"],
    "phone": [
        "13800138000", "138 0013 8000", "138-0013-8000", "+86 13800138000", "0086-13800138000", "010-62345678",
        "(010)62345678", "（0755）8765432",
        "0755-8765 4321", "+86 10 6234 5678", "010-62345678-801", "212-555-0123", "(212) 555-0123",
        "212.555.0123", "+1 212 555 0123", "1-800-555-0199", "+44 20 7946 0958", "+49 (30) 123456", "+447911123456",
    ],
    "id_number": ["11010519491231002X", "11010519491231002x", "440524188001010014", "123-45-6789"],
    "payment_card": ["4111111111111111", "4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005",
    "3782 822463 10005"],
    "ip_address": ["208.80.152.2", "2001:4860:4860:0:0:0:0:8888", "2001:4860:4860::8888"],
}  # fmt: skip
LEFT = {
    "email": ["@property", "A@B.T", "x@y.sum(0)", "user@localhost", "1..@header.num_answers", "at example.org", "a@b",
    "@me.com"],
    "phone": [
        "10.1000/182-1234-5678", "doi:10.1038/s41586-020-2649-2", "978-0-306-40615-7",
        "ISSN 1234-5678", "2021-03-04", "1990-2020",
        "3.13800138000", "3.1415926535897", "20210304123456",
        "1,234,567,890", "v1.2.3", "+2.718281828", "UTC+0800", "2101.01234",
        "128.256.512.1024", "A13800138000", "10800138000", "photo (13800138000).jpg",
        "112-555-0123", "212-155-0123", "2012-555-0123",
        "192.168.100.200", "12:30:45", "100 200 300",
    ],
    "id_number": ["110105194912310021", "110105194913310021", "123456789012345678", "000-12-3456", "666-12-3456",
    "900-12-3456",
                  "123-00-4567", "123-45-0000", "10.1000/123-45-67890", "2021-03-0405"],
    "payment_card": ["4111111111111112", "1234567890123456", "2021030412345678", "0.4111111111111111",
    "4111 1111-1111 1111"],
    "ip_address": ["192.168.0.1", "127.0.0.1", "10.0.0.255", "version 14.21.3.11", "3.4.4.4", "300.1.1.1", "1.2.3",
    "12:30:45",
                   "std::vector", "::1", "2001:db8::1", "1.20.30.40.50"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in FOUND.items() for text in texts])
def test_it_is_found_in_english_and_between_chinese(name: str, text: str) -> None:
    placeholder = members("cleaning")[name].model_fields["placeholder"].default
    assert mask(name, f"Write to {text}, or do not.") == (f"Write to {placeholder}, or do not.", 1)
    assert mask(name, f"请联系{text}，谢谢。") == (f"请联系{placeholder}，谢谢。", 1)
    assert mask(name, f"{text}\n{text}") == (f"{placeholder}\n{placeholder}", 2)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in LEFT.items() for text in texts])
def test_what_only_looks_like_it_stays(name: str, text: str) -> None:
    for whole in (text, f"See {text} there.", f"看{text}吧"):
        assert mask(name, whole) == (whole, 0)


def test_every_mask_has_cases_of_both_kinds() -> None:
    assert MASKS == sorted(FOUND) == sorted(LEFT)


@pytest.mark.parametrize("name", MASKS)
@given(data=st.data())
def test_nothing_is_left_behind(name: str, data: st.DataObject) -> None:
    glue = st.sampled_from(["", " ", "-", ".", "1", "x", "，", "@", "+", "/", "汉", "\n"])
    pieces = st.sampled_from([text for texts in (*FOUND.values(), *LEFT.values()) for text in texts])
    text = "".join(data.draw(st.lists(st.one_of(glue, pieces), max_size=8)))
    masked, count = mask(name, text)
    assert mask(name, masked) == (masked, 0)
    assert (count == 0) == (masked == text)


def test_documentation_of_code_has_no_telephones() -> None:
    text = "\n".join(documents("logging", "json", "urllib", "asyncio", *MANY))
    assert [mask(name, text)[1] for name in ("phone", "id_number", "payment_card")] == [0, 0, 0]


def test_a_placeholder_is_chosen_and_would_not_be_masked() -> None:
    chosen = Cleaner.model_validate({"name": "email", "placeholder": "<mail>"})
    assert isinstance(chosen, Mask) and chosen.make_mask()("a@b.org") == ("<mail>", 1)
    for wrong in ("me@example.org", "", "a\nb", "555"):
        with pytest.raises(ValidationError, match="placeholder"):
            Cleaner.model_validate({"name": "email", "placeholder": wrong})
