"""Messages to systemd about the state of a service with ``Type=notify`` (sd_notify(3))."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import MutableMapping
from dataclasses import dataclass

#: Environment variable with the path of systemd's socket, or with the name of an abstract socket after ``@``.
_VARIABLE = "NOTIFY_SOCKET"


@dataclass(frozen=True)
class Notifier:
    """Sends messages to systemd: that this service has started, and the status line that ``systemctl status`` shows."""

    #: Address of systemd's socket; empty for a process that systemd did not start: then nothing is sent.
    address: str

    @classmethod
    def taken(cls, env: MutableMapping[str, str] | None = None) -> Notifier:
        """Return the Notifier for systemd's socket in the variable NOTIFY_SOCKET, and remove this variable from the
        environment.

        Programs that this process starts, such as commands of jobs, then cannot send messages to systemd in its name.
        """
        address = (os.environ if env is None else env).pop(_VARIABLE, "")
        return cls(f"\0{address[1:]}" if address.startswith("@") else address)

    def ready(self, status: str = "") -> None:
        """Tell systemd that this service has started; ``status`` is the line that ``systemctl status`` shows."""
        self._send("READY=1", f"STATUS={status}")

    def status(self, text: str) -> None:
        """Send systemd the text that ``systemctl status`` shows for this service."""
        self._send(f"STATUS={text}")

    def _send(self, *lines: str) -> None:
        if not self.address:
            return
        # A service manager that went away must not end the service.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(self.address)
            sender.send("\n".join(lines).encode())
