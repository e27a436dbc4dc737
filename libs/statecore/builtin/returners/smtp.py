"""Returner ``smtp``: sends returns and events by e-mail.

Settings: ``smtp.from``, ``smtp.to`` (addresses with commas between them) and ``smtp.host`` are required; ``port`` (default
25), ``tls`` (True: STARTTLS), ``username``, ``password``; ``subject`` (a template), ``fields`` (fields of the return, with
commas between them, that are added to the subject), ``template`` (path of a template of the text on the host), ``renderer``
(default jinja), ``gpgowner`` (a user, whose GnuPG keys encrypt the text). Templates see the fields of the return, or those of
the event's data.
"""

from __future__ import annotations

import smtplib
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from email.utils import formatdate

from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.mail import Server, send
from statecore.system.returner_settings import settings_of

_NEEDED = ("from", "to", "host")

_DEFAULTS: Mapping[str, object] = {
    **dict.fromkeys((*_NEEDED, "tls", "username", "password", "template", "gpgowner", "fields")),
    "port": 25,
    "subject": "Email from Salt",
    "renderer": "jinja",
}

#: Text of a mail without ``template``. The data of an event need not have all of these.
_TEXT = "".join(
    f"{title}: {{{{ {name} | default('') }}}}\n"
    for title, name in {
        "id": "id",
        "function": "fun",
        "function args": "fun_args",
        "jid": "jid",
        "return": "return",
    }.items()
)


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Send one minion's return of a job by e-mail. Raises CommandError if a setting is missing or the mail cannot be
    sent.
    """
    settings = settings_of(ctx.functions["config.option"], "smtp", ret, _DEFAULTS)
    if missing := [name for name in _NEEDED if not settings[name]]:
        raise CommandError(f"settings are missing: {', '.join(f'smtp.{name}' for name in missing)}")
    receivers = [part.strip() for part in str(settings["to"]).split(",") if part.strip()]
    fields = [part.strip() for part in str(settings["fields"] or "").split(",")]
    # Fields of a return are data. Only the subject of the configuration is a template.
    subject = [
        _rendered(ctx, str(settings["subject"]), settings, ret),
        *(str(ret[name]) for name in fields if name in ret),
    ]
    message = EmailMessage()
    message["From"], message["To"] = str(settings["from"]), ", ".join(receivers)
    message["Date"] = formatdate(localtime=True)
    message["Subject"] = " ".join(" ".join(subject).split())
    text = _rendered(ctx, _template(ctx, settings), settings, ret)
    message.set_content(_encrypted(ctx, str(settings["gpgowner"]), receivers, text) if settings["gpgowner"] else text)
    server = Server(
        str(settings["host"]),
        int(str(settings["port"])),
        starttls=settings["tls"] is True,
        user=str(settings["username"] or ""),
        password=str(settings["password"] or ""),
    )
    try:
        send(server, message, str(settings["from"]), receivers)
    except (smtplib.SMTPException, OSError) as error:
        raise CommandError(f"mail server {server.host}:{server.port}: {error}") from error


def event_return(ctx: Context, events: Sequence[Mapping[str, object]]) -> None:
    """Send an e-mail for each event that has data. Raises CommandError if a setting is missing or a mail cannot be
    sent.
    """
    for event in events:
        data = event.get("data")
        if isinstance(data, Mapping) and data:
            returner(ctx, data)


def _template(ctx: Context, settings: Mapping[str, object]) -> str:
    name = settings["template"]
    if not name:
        return _TEXT
    try:
        return ctx.host.path(str(name)).read_text("utf-8")
    except OSError as error:
        raise CommandError(f"smtp.template: {name}: {error.strerror}") from error


def _rendered(ctx: Context, text: str, settings: Mapping[str, object], ret: Mapping[str, object]) -> str:
    return ctx.templates.render(text, str(settings["renderer"]), ret, saltenv=ctx.saltenv)


def _encrypted(ctx: Context, owner: str, receivers: list[str], text: str) -> str:
    made = ctx.call("gpg.encrypt", user=owner, recipients=receivers, text=text, always_trust=True)
    if not made.get("res"):
        raise CommandError(
            f"smtp.gpgowner: the mail is not sent, because it cannot be encrypted: {made.get('comment')}"
        )
    return str(made["comment"])
