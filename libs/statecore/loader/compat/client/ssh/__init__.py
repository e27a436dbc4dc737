"""``salt.client.ssh`` for users' modules. salt-ssh is not part of Saltern: only names that modules import exist."""
