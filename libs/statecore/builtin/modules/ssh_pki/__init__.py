"""Private keys and certificates of OpenSSH: Salt's ``ssh_pki`` execution module.

An argument that is a key or certificate is either a path of the host, or the content as OpenSSH writes it. Signing
policies are the option ``ssh_signing_policies`` of pillar or minion configuration. The option ``peer`` of the master lets
other minions call ``ssh_pki.sign_remote_certificate``. The extra ``saltern-statecore[certificates]`` brings the libraries
cryptography, and bcrypt for encrypted keys.
"""

from __future__ import annotations

from statecore.builtin.modules.ssh_pki import creation, inspection, signing

#: The modules that define the functions of ``ssh_pki``.
PARTS = (creation, signing, inspection)
