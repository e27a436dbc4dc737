"""Returner ``highstate``: sends a report of a state run by e-mail, or writes it into a file of the host.

Settings, each with the prefix ``highstate.``: ``report_changes`` (default True), ``report_failures`` (True),
``report_everything`` (False): which runs are reported. ``report_format``: yaml (default), json or html. ``report_delivery``:
file (default) or smtp. ``file_output`` (default ``/tmp/test.rpt``). ``success_function``, ``failure_function``: execution
functions whose result is added to the report. ``smtp_server``, ``smtp_port`` (25), ``smtp_tls``, ``smtp_username``,
``smtp_password``, ``smtp_sender``, ``smtp_recipients`` (addresses with commas between them), ``smtp_success_subject``,
``smtp_failure_subject``. Grains may stand in subjects and in ``file_output``: ``{id}``.
"""

from __future__ import annotations

import html
import json
import smtplib
from collections.abc import Iterator, Mapping, Sequence
from email.message import EmailMessage
from typing import Any, TypeAlias

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError
from statecore.system.mail import Server, send
from statecore.system.return_json import plain
from statecore.system.returner_settings import settings_of, with_grains

VIRTUAL = "highstate"

_DEFAULTS: Mapping[str, object] = {
    "report_everything": False,
    "report_changes": True,
    "report_failures": True,
    "failure_function": None,
    "success_function": None,
    "report_format": "yaml",
    "report_delivery": "file",
    "file_output": "/tmp/test.rpt",
    "smtp_sender": "",
    "smtp_recipients": "",
    "smtp_failure_subject": "Installation failure",
    "smtp_success_subject": "Installation success",
    "smtp_server": "",
    "smtp_port": 25,
    "smtp_tls": None,
    "smtp_username": None,
    "smtp_password": None,
}

#: A report: a list of maps with one name each, whose values may be such lists. ``__style__`` names a colour.
Report: TypeAlias = list[dict[str, Any]]

_COLOURS: Mapping[str, str] = {"failed": "red", "changed": "green", "unchanged": "blue"}


def returner(ctx: Context, ret: Mapping[str, object]) -> None:
    """Send or write the report of one state run, as the settings of the returner ``highstate`` say. Returns of other
    functions are ignored.

    Raises CommandError if the mail cannot be sent or the file cannot be written.
    """
    results = ret.get("return")
    if not isinstance(results, Mapping) or not all(_is_state(*row) for row in results.items()):
        return
    settings = settings_of(ctx.functions["config.option"], "highstate", ret, _DEFAULTS)
    ordered = sorted(results.items(), key=lambda row: row[1].get("__run_num__", 0))
    failed = sum(1 for _, state in ordered if not state.get("result", True))
    changed = sum(1 for _, state in ordered if state.get("changes"))
    if not (
        settings["report_everything"]
        or (settings["report_changes"] and changed)
        or (settings["report_failures"] and failed)
    ):
        return
    report = _report(ret, ordered, failed, changed)
    extra = settings["failure_function" if failed else "success_function"]
    if extra:
        report.insert(0, {"extra": [{str(extra): _pairs(ctx.call(str(extra)))}]})
    form = str(settings["report_format"])
    text = _text(plain(report), form)
    if settings["report_delivery"] == "smtp":
        _mail(ctx, settings, text, form, failed=bool(failed))
    else:
        name = with_grains(str(settings["file_output"]), ctx.grains, path=True)
        try:
            managed_file.replace(ctx.host, ctx.host.path(name), text.encode(), Attributes())
        except (OSError, HostError) as error:
            raise CommandError(f"highstate.file_output: {name}: {error}") from error


def _is_state(key: object, state: object) -> bool:
    return isinstance(key, str) and key.count("_|-") == 3 and isinstance(state, Mapping)


def _report(ret: Mapping[str, object], ordered: Sequence[tuple[str, Any]], failed: int, changed: int) -> Report:
    durations = [float(state["duration"]) for _, state in ordered if isinstance(state.get("duration"), int | float)]
    return [
        {
            "stats": [
                {"total": len(ordered)},
                {"failed": failed, "__style__": "failed"},
                {"unchanged": len(ordered) - failed - changed, "__style__": "unchanged"},
                {"changed": changed, "__style__": "changed"},
                {"duration": sum(durations, 0.0)},
            ]
        },
        {
            "job": [
                {"function": ret.get("fun", "")},
                {"arguments": ret.get("fun_args", "")},
                {"jid": ret.get("jid", "")},
                {"success": ret.get("success", True)},
                {"retcode": ret.get("retcode", 0)},
            ]
        },
        {"states": [_state(key, state) for key, state in ordered]},
    ]


def _state(key: str, state: Mapping[str, Any]) -> dict[str, Any]:
    module, declared, name, function = key.split("_|-")
    row: Report = [
        {"function": f"{module}.{function}"},
        {"name": name},
        {"result": state.get("result", "")},
        {"duration": state.get("duration", 0.0)},
        {"comment": state.get("comment", "")},
    ]
    changes = state.get("changes")
    if not state.get("result"):
        style = "failed"
    elif changes and isinstance(changes, Mapping):
        row.append({"changes": _pairs(changes)})
        style = "changed"
    else:
        style = "unchanged"
    if state.get("start_time"):
        row.append({"started": state["start_time"]})
    return {declared: row, "__style__": style}


def _pairs(value: object) -> object:
    """Return a map as a list of maps with one key each, sorted by key, and the maps inside it likewise; any other
    value unchanged.
    """
    return [{name: _pairs(value[name])} for name in sorted(value)] if isinstance(value, Mapping) else value


def _text(report: object, form: str) -> str:
    if form == "json":
        return json.dumps(report)
    if form == "yaml":
        return str(yaml.dump(report, default_flow_style=False))
    return f"<html>\n<body>\n{''.join(_table(report))}</body>\n</html>\n"


def _table(rows: object, style: str = "") -> Iterator[str]:
    """Yield pieces of HTML that show a report (a list) as a table: one row for each item, and for a map one row for
    each key, with key and value in two cells.
    """
    yield '<table style="border-collapse: collapse; width: 100%">\n'
    for row in rows if isinstance(rows, list) else [rows]:
        own = style
        named = row
        if isinstance(row, dict):
            own = _COLOURS.get(str(row.get("__style__")), style)
            named = {name: value for name, value in row.items() if name != "__style__"}
        for cells in named.items() if isinstance(named, dict) else [(named,)]:
            yield "<tr>"
            for position, cell in enumerate(cells):
                width = "; width: 70pt" if len(cells) == 2 and position == 0 else ""
                colour = f"; color: {own}" if own else ""
                yield f'<td style="border: 1px solid #9e9e9e; vertical-align: top{width}{colour}">'
                yield from _table(cell, own) if isinstance(cell, list) else (html.escape(str(cell)),)
                yield "</td>"
            yield "</tr>\n"
    yield "</table>\n"


def _mail(ctx: Context, settings: Mapping[str, Any], text: str, form: str, *, failed: bool) -> None:
    receivers = [part.strip() for part in str(settings["smtp_recipients"]).split(",") if part.strip()]
    sender = str(settings["smtp_sender"])
    if not receivers or not settings["smtp_server"]:
        raise CommandError("settings are missing: highstate.smtp_server and highstate.smtp_recipients")
    message = EmailMessage()
    subject = settings["smtp_failure_subject" if failed else "smtp_success_subject"]
    message["Subject"] = " ".join(with_grains(str(subject), ctx.grains).split())
    message["From"], message["To"] = sender, ", ".join(receivers)
    message.set_content(text, subtype=form)
    server = Server(
        str(settings["smtp_server"]),
        int(settings["smtp_port"]),
        starttls=settings["smtp_tls"] is True,
        user=str(settings["smtp_username"] or ""),
        password=str(settings["smtp_password"] or ""),
    )
    try:
        send(server, message, sender, receivers)
    except (smtplib.SMTPException, OSError) as error:
        raise CommandError(f"mail server {server.host}:{server.port}: {error}") from error
