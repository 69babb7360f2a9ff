"""SQLite refuses where it is not enough, by the file system's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import CursusError
from tasks.servers.tracking_database import filesystem, is_database, refuse_network_folder

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/exports /shared nfs4 rw,vers=4.2 0 0
tmpfs /shared/ada/scratch tmpfs rw 0 0
//server/share /far/my\\040share cifs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/cursus", "ext4"),
        ("/shared/ada/cursus", "nfs4"),
        ("/shared/ada/scratch/cursus", "tmpfs"),
        ("/shareds/ada", "ext4"),
        ("/far/my share/cursus", "cifs"),
    ],
)
def test_the_file_system_of_a_folder_is_that_of_the_nearest_mount(path: str, kind: str) -> None:
    assert filesystem(Path(path), MOUNTS) == kind


def test_a_tracking_database_on_a_network_file_system_is_refused() -> None:
    root = Path("/shared/ada/cursus")
    with pytest.raises(CursusError, match=r"mlflow\.db is on a network file system \(nfs4\).*PostgreSQL"):
        refuse_network_folder(root, f"sqlite:///{root}/.cursus/mlflow.db", MOUNTS)
    refuse_network_folder(root, "postgresql://db.example.org/mlflow", MOUNTS)
    refuse_network_folder(Path("/srv"), "sqlite:////srv/.cursus/mlflow.db", MOUNTS)


def test_this_machine_tells_what_its_folders_are_on(tmp_path: Path) -> None:
    if not Path("/proc/mounts").exists():
        pytest.skip("this system has no /proc/mounts")
    assert filesystem(tmp_path)


def test_which_addresses_are_databases() -> None:
    assert is_database("sqlite:////a/b.db") and is_database("postgresql+psycopg2://user:word@host/name")
    assert not is_database("https://mlflow.example.org") and not is_database("")
