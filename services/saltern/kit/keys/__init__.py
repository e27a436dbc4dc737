"""The key files of all roles: made by ``saltern keygen``, kept as files or as Kubernetes secrets."""
