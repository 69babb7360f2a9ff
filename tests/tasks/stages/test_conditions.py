"""What is recorded of the conditions of a step."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pipelines.recipe.job import Runtime
from tasks.stages import conditions as recorded
from tasks.stages.conditions import conditions


def test_a_commit_with_changed_sources_is_marked_and_one_with_changed_documents_is_not(tmp_path: Path) -> None:
    for path in ("docs/claims.md", "pipelines/part.py"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text("before\n", encoding="utf-8")
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for arguments in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "all")):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    head = commit_of(tmp_path)
    assert head is not None and len(head) == 40
    (tmp_path / "docs" / "claims.md").write_text("a record was written\n", encoding="utf-8")
    assert commit_of(tmp_path) == head
    (tmp_path / "pipelines" / "part.py").write_text("after\n", encoding="utf-8")
    assert commit_of(tmp_path) == f"{head}+"


def commit_of(root: Path) -> str | None:
    recorded.commit_of.cache_clear()
    return conditions(root, Runtime()).commit
