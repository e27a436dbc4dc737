"""The key files of all roles: ``saltern keygen`` makes them, as files or as Kubernetes Secrets."""
