"""OpenPGP keys, messages and signatures: Salt's ``gpg`` execution module.

Arguments of most functions: ``user`` is the user whose keys are used; ``salt`` means the keys in the minion's ``gpg_keydir``.
``gnupghome`` is gpg's home directory on the host; default: ``.gnupg`` in the user's home. ``keyring`` is the path of a file of
public keys to use in place of the user's. A passphrase is ``gpg_passphrase`` of the pillar. All functions but ``verify`` use
the host's program gpg, as the user.
"""

from __future__ import annotations

from statecore.builtin.modules.gpg import keys, messages, signatures

#: The modules that define the functions of ``gpg``.
PARTS = (keys, messages, signatures)
