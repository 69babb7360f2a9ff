"""How servers are named in params.yaml: what is an address, and what is a secret that must not stand there."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.corpora.reading.addresses import is_address, secret_in
from pipelines.corpora.settings.sources import FileSource


def test_what_is_an_address_and_what_is_not() -> None:
    assert is_address("s3://bucket/a.jsonl") and is_address("HTTPS://host/a.jsonl")
    assert not is_address("file:///tmp/a.jsonl") and not is_address("corpora/a.jsonl") and not is_address("C:/a.jsonl")


def test_settings_that_only_sound_like_secrets_are_none() -> None:
    settings = {"endpoint_url": "https://host", "anon": True, "profile": "me", "client_kwargs": {"region_name": "x"}}
    assert secret_in(settings) is None and secret_in({"keyspace": "x", "default_block_size": 1}) is None


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ({"storage": {"secret": "x"}}, "storage.secret: secrets must not be written here.*AWS_SECRET_ACCESS_KEY"),
        (
            {"storage": {"client_kwargs": {"aws_session_token": "x"}}},
            "storage.client_kwargs.aws_session_token: secrets",
        ),
        ({"storage": {"key": "x"}}, "storage.key: secrets"),
        ({"path": "https://me:word@host/a.jsonl"}, "the user and password before '@' of the address is a secret"),
        ({"path": "https://host/a.jsonl?X-Amz-Signature=5f"}, "the query 'X-Amz-Signature' of the address is a secret"),
        ({"path": "a.jsonl", "storage": {"anon": True}}, "storage: the path is local"),
    ],
)
def test_secrets_do_not_stand_in_settings(source: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        FileSource(**({"path": "s3://bucket/a.jsonl"} | source))
    assert "storage" not in FileSource(path="s3://b/a.jsonl", storage={"anon": True}).model_dump()
