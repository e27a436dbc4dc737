"""Finding 38.11: what a real master and a real minion leave on disk after jobs, states and files, with a umask of 000."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.roles.lab import Lab
from tests.security.test_private_caches import readable_by_others

pytestmark = pytest.mark.roles

SECRET = "password of a database\n"

STATES = """\
from the tree:
  file.managed:
    - name: /srv/secret
    - source: salt://private/secret
    - mode: '0600'
    - makedirs: true
changed:
  file.managed:
    - name: /srv/secret
    - contents: another password
    - backup: minion
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """After a run. Every process of the lab began with the umask 000."""
    before = os.umask(0)
    made = Lab(tmp_path_factory.mktemp("private"), minions=("web1",), options={"file_recv": True})
    try:
        private = made.tree / "salt" / "private"
        private.mkdir()
        (private / "secret").write_text(SECRET)
        (private / "init.sls").write_text(STATES)
        made.start_all()
        made.salt("web1", "saltutil.sync_all")
        made.salt("web1", "state.apply", "private")
        made.salt("web1", "cp.push", "/srv/secret")
        made.salt("web1", "cp.cache_file", "salt://private/secret")
        yield made
    finally:
        os.umask(before)
        made.close()


def _minion(lab: Lab, name: str) -> Path:
    return lab.root / "minions" / "web1" / name


def test_the_secret_was_there(lab: Lab) -> None:
    """The copies that the other attacks look for exist, and only the minion's user reads them."""
    copies = [path for path in lab.cache("web1").rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert {path.relative_to(lab.cache("web1")).parts[0] for path in copies} >= {"files", "file_backup"}
    assert [path for path in copies if path.stat().st_mode & 0o077] == []


@pytest.mark.parametrize("name", ["cache", "pki"])
def test_others_read_nothing_of_a_minion(name: str, lab: Lab) -> None:
    assert readable_by_others(_minion(lab, name)) == {}


def test_others_read_no_file_that_a_minion_sent(lab: Lab) -> None:
    place = lab.root / "master-cache"
    assert [path.read_text() for path in place.rglob("secret")] == ["another password\n"]
    assert readable_by_others(place) == {}
