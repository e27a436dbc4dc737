"""Returner ``slack_webhook``: posts returns and events to a channel of Slack, through an incoming webhook.

Settings: ``slack_webhook.webhook`` (required: the part of the webhook's address after ``https://hooks.slack.com/services/``,
or a whole address), ``success_title`` (default ``{id} | Succeeded``), ``failure_title`` (``{id} | Failed``), ``author_icon``
(address of a picture), ``show_tasks`` (True: name changed and failed states). Grains may stand in titles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urljoin

from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.return_json import plain
from statecore.system.returner_settings import settings_of, with_grains

_SERVICES = "https://hooks.slack.com/services/"

_DEFAULTS: Mapping[str, object] = {
    "webhook": None,
    "success_title": "{id} | Succeeded",
    "failure_title": "{id} | Failed",
    "author_icon": "",
    "show_tasks": False,
}


def returner(ctx: Context, ret: Mapping[str, Any]) -> bool:
    """Post one minion's return of a job to the Slack channel; return True. Raises CommandError if the webhook is not
    set or Slack refuses.
    """
    return _post(ctx, ret, author=str(ctx.grains.get("id", "")))


def event_return(ctx: Context, events: Sequence[Mapping[str, Any]]) -> bool:
    """Post each event whose data names a function, except ``saltutil.find_job``, to the Slack channel; return True.
    Raises CommandError if the webhook is not set or Slack refuses.
    """
    for event in events:
        data = event.get("data")
        if isinstance(data, Mapping) and data.get("fun") and "saltutil.find_job" not in data["fun"]:
            _post(ctx, data, author=str(data.get("id", "")))
    return True


def _post(ctx: Context, ret: Mapping[str, Any], author: str) -> bool:
    settings = settings_of(ctx.functions["config.option"], "slack_webhook", ret, _DEFAULTS)
    if not settings["webhook"]:
        raise CommandError("the option slack_webhook.webhook is not set")
    success = ret.get("retcode", 1) == 0
    title = str(settings["success_title" if success else "failure_title"])
    head = {
        "fallback": with_grains(title, ctx.grains),
        "color": "#272727",
        "author_name": author,
        "author_link": str(ctx.grains.get("localhost", "")),
        "author_icon": settings["author_icon"],
        "title": f"Success: {success}",
    }
    payload = {"attachments": _attachments(ret, head, success=success, tasks=bool(settings["show_tasks"]))}
    answer = ctx.call(
        "http.query",
        urljoin(_SERVICES, str(settings["webhook"])),
        method="POST",
        data=urlencode({"payload": json.dumps(plain(payload), ensure_ascii=False)}),
        text=True,
        status=True,
    )
    if answer.get("status", 200) != 200 or answer.get("text") != "ok":
        raise CommandError(f"Slack: {answer.get('error') or answer.get('text') or 'the answer is empty'}")
    return True


def _attachments(ret: Mapping[str, Any], head: dict[str, Any], *, success: bool, tasks: bool) -> list[dict[str, Any]]:
    lines = [f"Function: {ret.get('fun')}"]
    if arguments := ret.get("fun_args"):
        lines.append(f"Function Args: {list(map(str, arguments))}")
    lines.append(f"JID: {ret.get('jid')}")
    result = ret.get("return")
    if not (isinstance(result, Mapping) and result and all(_is_state(*row) for row in result.items())):
        shown = f"\n{yaml.dump(plain(result), indent=2)}" if isinstance(result, Mapping) else result
        lines.append("")
        return [
            {**head, "text": "\n".join(lines)},
            {"color": "good" if success else "danger", "title": f"Return: {shown}"},
        ]
    ordered = sorted(result.items(), key=lambda row: row[1].get("__run_num__", 0))
    changed = [_task(*row) for row in ordered if row[1].get("changes")]
    failed = [_task(*row) for row in ordered if not row[1].get("result", True)]
    seconds = sum(float(state.get("duration") or 0) for _, state in ordered) / 1000
    lines += [f"Total: {len(ordered)}", f"Duration: {seconds:.2f} secs"]
    return [
        {**head, "text": "\n".join(lines)},
        {"color": "good", "title": f"Unchanged: {len(ordered) - len(failed) - len(changed)}"},
        _counted("warning", "Changed", changed, tasks=tasks),
        _counted("danger", "Failed", failed, tasks=tasks),
    ]


def _is_state(key: object, state: object) -> bool:
    return isinstance(key, str) and key.count("_|-") == 3 and isinstance(state, Mapping)


def _task(key: str, state: Mapping[str, Any]) -> str:
    return f"{state.get('__sls__')}.sls | {key.split('_|-')[1]}"


def _counted(colour: str, title: str, names: list[str], *, tasks: bool) -> dict[str, Any]:
    fields = {"fields": [{"value": name, "short": False} for name in names]} if tasks and names else {}
    return {"color": colour, "title": f"{title}: {len(names)}", **fields}
