"""What ``salt.runner`` is, for scripts: ``saltern.runner.RunnerClient``."""

from __future__ import annotations

from saltern.client.synchronous import RunnerClient as RunnerClient
