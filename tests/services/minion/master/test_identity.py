"""A minion's keys on disk: made once, read ever after, the master's pinned."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from saltern.kit.config.master import ConfigError
from saltern.minion.master import identity as identity_module
from saltern.minion.master.identity import Identity
from saltwire.keys import PrivateKey


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("minion") / "pki" / "minion"
    Identity.load("web1", directory, 2048)
    return directory


@pytest.fixture
def pki(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(made, tmp_path / "pki"))


def test_a_new_minion_makes_its_pair(made: Path) -> None:
    assert sorted(path.name for path in made.iterdir()) == ["minion.pem", "minion.pub"]
    assert made.stat().st_mode & 0o077 == 0
    assert (made / "minion.pem").stat().st_mode & 0o777 == 0o400
    private = PrivateKey.from_pem((made / "minion.pem").read_bytes())
    assert (made / "minion.pub").read_text().strip() == private.public.pem


def test_an_old_minion_keeps_it(pki: Path) -> None:
    before = (pki / "minion.pem").read_bytes()
    loaded = Identity.load("web1", pki, 2048)
    assert (loaded.id, loaded.private.to_pem()) == ("web1", before)
    assert loaded.master() is None


def test_of_several_that_make_a_pair_at_once_one_is_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process for each of several masters: their next sign-ins find the pair gone together."""
    others: list[Identity] = []
    generate = PrivateKey.generate

    def slowly(bits: int) -> PrivateKey:
        if not others:
            monkeypatch.setattr(PrivateKey, "generate", generate)
            others.append(Identity.load("web1", tmp_path, 2048))
        return generate(bits)

    monkeypatch.setattr(PrivateKey, "generate", slowly)
    ours = Identity.load("web1", tmp_path, 2048)
    assert [other.private.to_pem() for other in others] == [ours.private.to_pem()]
    assert (tmp_path / "minion.pub").read_text().strip() == ours.private.public.pem


def test_a_lost_public_key_is_written_again_and_nothing_else(pki: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public = (pki / "minion.pub").read_bytes()
    (pki / "minion.pub").unlink()
    Identity.load("web1", pki, 2048)
    assert (pki / "minion.pub").read_bytes() == public

    def refuse(path: Path, content: bytes) -> None:
        raise OSError(30, "Read-only file system", str(path))

    monkeypatch.setattr(identity_module.private_files, "write", refuse)
    Identity.load("web1", pki, 2048).master()


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", r"minion\.pem: not a private key"), (b"broken", r"minion\.pem: not a private key")],
)
def test_a_broken_key_is_named_and_stays(pki: Path, content: bytes, says: str) -> None:
    (pki / "minion.pem").unlink()
    (pki / "minion.pem").write_bytes(content)
    with pytest.raises(ConfigError, match=says):
        Identity.load("web1", pki, 2048)
    assert (pki / "minion.pem").read_bytes() == content


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=f"pki_dir: {tmp_path / 'file'}"):
        Identity.load("web1", tmp_path / "file" / "pki", 2048)


def test_a_key_has_at_least_the_bits_that_masters_accept(tmp_path: Path) -> None:
    Identity.load("web1", tmp_path / "pki", 7)
    assert load_pem_private_key((tmp_path / "pki" / "minion.pem").read_bytes(), None).key_size == 2048


def test_the_master_is_pinned(pki: Path, role_keys: Path) -> None:
    master = PrivateKey.from_pem((role_keys / "mworker" / "master.pem").read_bytes()).public
    loaded = Identity.load("web1", pki, 2048)
    loaded.trust(master.pem)
    again = Identity.load("web1", pki, 2048).master()
    assert again is not None
    assert again.pem == master.pem
    stamp = (pki / "minion_master.pub").stat().st_mtime_ns
    loaded.trust(master.pem)
    assert (pki / "minion_master.pub").stat().st_mtime_ns == stamp
    assert not list(pki.glob(".*")), "a temporary file was left"


def test_a_broken_pin_is_no_pin_to_go_without(pki: Path) -> None:
    (pki / "minion_master.pub").write_text("broken")
    with pytest.raises(ConfigError, match=r"minion_master\.pub: .*remove it to trust the master's key anew"):
        Identity.load("web1", pki, 2048).master()


def test_a_pair_that_is_taken_from_a_running_minion_is_made_anew(pki: Path) -> None:
    """``saltutil.regen_keys``: what a minion signs in with is what lies there, or its next start would be denied."""
    running, job = Identity.load("web1", pki, 2048), Identity.load("web1", pki, 2048)
    before = running.private.to_pem()
    running.renew()
    assert running.private.to_pem() == before
    (pki / "minion.pem").unlink()
    (pki / "minion.pub").unlink()
    job.reread()
    assert job.private.to_pem() == before
    assert not (pki / "minion.pem").exists()
    running.renew()
    assert running.private.to_pem() == (pki / "minion.pem").read_bytes() != before
    assert (pki / "minion.pub").read_text().strip() == running.private.public.pem
    job.reread()
    assert job.private.to_pem() == running.private.to_pem()


@pytest.mark.parametrize("content", [b"", b"broken"])
def test_a_pair_that_cannot_be_read_any_more_is_kept(pki: Path, content: bytes) -> None:
    running = Identity.load("web1", pki, 2048)
    before = running.private.to_pem()
    (pki / "minion.pem").unlink()
    (pki / "minion.pem").write_bytes(content)
    running.renew()
    assert running.private.to_pem() == before
    shutil.rmtree(pki)
    running.renew()
    assert running.private.to_pem() == before
