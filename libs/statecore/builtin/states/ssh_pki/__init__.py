"""Salt's ``ssh_pki`` states: private keys, public keys and certificates of OpenSSH.

A certificate authority is a private key. Another minion may sign: ``ca_server`` names it, and its signing policies are the
option ``ssh_signing_policies`` of its pillar or configuration. The master's option ``peer`` must let minions call
``ssh_pki.sign_remote_certificate``.
"""

from __future__ import annotations

from statecore.builtin.states.ssh_pki import certificate, key

#: Modules whose public functions are this package's state functions.
PARTS = (key, certificate)
