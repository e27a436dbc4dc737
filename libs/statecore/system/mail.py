"""Sending of e-mail for returners, by Python's smtplib."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage

#: Seconds to wait for a mail server that does not answer.
_TIMEOUT = 30.0


@dataclass(frozen=True)
class Server:
    """Address of a mail server, the user and password for it, and whether the connection is encrypted by STARTTLS."""

    host: str
    port: int
    #: Encrypt the connection by STARTTLS; the server's certificate is checked.
    starttls: bool = False
    #: Empty: no login.
    user: str = ""
    password: str = ""


def send(server: Server, message: EmailMessage, sender: str, receivers: Sequence[str]) -> None:
    """Send an e-mail through a mail server. Raises smtplib.SMTPException, and OSError if the server does not answer."""
    with smtplib.SMTP(server.host, server.port, timeout=_TIMEOUT) as connection:
        if server.starttls:
            connection.starttls(context=ssl.create_default_context())
        if server.user and server.password:
            connection.login(server.user, server.password)
        refused = connection.send_message(message, sender, list(receivers))
    if refused:
        raise smtplib.SMTPRecipientsRefused(refused)
