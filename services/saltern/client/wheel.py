"""What ``salt.wheel`` is, for scripts: ``saltern.wheel.WheelClient``."""

from __future__ import annotations

from saltern.client.synchronous import WheelClient as WheelClient
