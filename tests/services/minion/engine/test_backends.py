"""What the preloaded process knows of its master."""

from __future__ import annotations

from pathlib import Path

from saltern.kit.config.minion_options import MinionOptions
from saltern.minion.engine.backends import MasterBackend
from saltern.minion.master.identity import Identity
from saltern.minion.master.masters import Masters
from saltwire.handshake import Credentials
from saltwire.keys import generate_key_string


def test_after_a_sign_in_with_a_new_pair_jobs_begin_with_that(tmp_path: Path) -> None:
    """``saltutil.regen_keys``: each job would read the new one by itself, for a tenth of a second, until the next start."""
    Identity.load("web1", tmp_path / "new", 2048)
    identity = Identity.load("web1", tmp_path / "pki", 2048)
    before = Credentials(generate_key_string(), "", 4505, "")
    home = MasterBackend(MinionOptions(id="web1"), Masters("m"), identity, before)
    (tmp_path / "pki" / "minion.pem").unlink()
    (tmp_path / "new" / "minion.pem").rename(tmp_path / "pki" / "minion.pem")
    home.set_credentials(Credentials(generate_key_string(), "", 4505, ""))
    assert identity.private.to_pem() == (tmp_path / "pki" / "minion.pem").read_bytes()
