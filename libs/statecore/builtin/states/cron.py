"""Salt's ``cron`` states: users' cron tables. A job is identified by ``identifier``, by default its command."""

from __future__ import annotations

from collections.abc import Mapping

from statecore.host.content import diffs
from statecore.loader.arguments import names_of
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, SlsError, StateFailure
from statecore.model.types import FileChange, Outcome, Plan, Step
from statecore.sources.file_source import FileVerification, Missing, find
from statecore.system.hostfiles import accounts, cron_spool, cron_table


def present(
    ctx: Context,
    name: str,
    user: str = "root",
    minute: object = "*",
    hour: object = "*",
    daymonth: object = "*",
    month: object = "*",
    dayweek: object = "*",
    comment: str | None = None,
    commented: bool = False,
    identifier: object = False,
    special: str | None = None,
) -> Plan:
    """Add a job to a user's cron table, or change it.

    minute, hour, daymonth, month, dayweek
        as in a cron table; ``random``: a random number, chosen when the job is added
    special
        ``@hourly``, ``@reboot`` and so on, in place of the times
    comment
        comment line above the job
    commented
        True: disable the job with ``#DISABLED#``
    identifier
        text that identifies the job if its command changes
    """
    cmd = str(name).strip()
    known_as = cmd if identifier is False else identifier
    about = {"cmd": cmd, "identifier": known_as, "comment": comment, "commented": commented is True}
    columns = dict(zip(cron_table.TIMES, (minute, hour, daymonth, month, dayweek), strict=True))
    when = {key: str(value).lower() for key, value in columns.items()} if special is None else {"spec": special}
    wanted = {**when, **about, "identifier": None if known_as is None else str(known_as)}
    table = _table(ctx, user)
    status = cron_table.status(table["crons" if special is None else "special"], wanted)
    if status == "present":
        return Plan.unchanged(f"Cron {cmd} already present")

    def work() -> Outcome:
        if special is None:
            done = ctx.call("cron.set_job", user, **columns, **about)
        else:
            done = ctx.call("cron.set_special", user, special, **about)
        return _outcome(done, "Cron", cmd, user, "\n")

    return Plan.change(f"Cron {cmd} is set to be {_WILL[status]}", [Step(f"set a cron job of {user}", work)])


def absent(
    ctx: Context,
    name: str,
    user: str = "root",
    identifier: object = False,
    special: str | None = None,
    **kwargs: object,
) -> Plan:
    """Remove a job from a user's cron table.

    ``special``: only a job with this special time. Other times are ignored.
    """
    cmd = str(name).strip()
    known_as = cmd if identifier is False else identifier
    table = _table(ctx, user)
    entries = table["crons"] if special is None else [each for each in table["special"] if each["spec"] == special]
    if not any(cron_table.matches(entry, cmd, known_as) for entry in entries):
        # Salt's comments differ in test mode.
        return Plan.unchanged(f"Cron {cmd} {'is' if ctx.test else 'already'} absent")

    def work() -> Outcome:
        if special is None:
            done = ctx.call("cron.rm_job", user, cmd, identifier=known_as)
        else:
            done = ctx.call("cron.rm_special", user, cmd, special=special, identifier=known_as)
        return _outcome(done, "Cron", cmd, user, "")

    return Plan.change(f"Cron {cmd} is set to be removed", [Step(f"remove a cron job of {user}", work)])


#: Function -> arguments that its ``**kwargs`` takes: those of ``cron.present``, so that one word makes a job absent.
OPTIONS: Mapping[str, frozenset[str]] = {"absent": names_of(present)}


def file(
    ctx: Context,
    name: object,
    source_hash: str = "",
    source_hash_name: str | None = None,
    user: str = "root",
    template: str | None = None,
    context: Mapping[str, object] | None = None,
    replace: bool = True,
    defaults: Mapping[str, object] | None = None,
    backup: object = "",
) -> Plan:
    """Replace a user's whole cron table by the content of a source: a ``salt://`` URL, a path, or a list of which the
    first that exists is used.

    ``template``, ``context``, ``defaults`` and ``source_hash`` are as in ``file.managed``. ``replace: False`` keeps
    an existing table.
    """
    if backup:
        return Plan.failed("not supported: backup (a cron table is written by the program crontab)")
    if accounts.find(ctx.host, user) is None:
        return Plan.failed(f"Could not identify group for user {user}")
    now = ctx.call("cron.raw_cron", user)
    if not replace and now.strip():
        return Plan.unchanged(f"User {user} already has a crontab. No changes made")
    old = (now if now.endswith("\n") else f"{now}\n").encode("utf-8", "surrogateescape")
    try:
        new = _source(ctx, name, source_hash, template, {**(defaults or {}), **(context or {})})
    except (CommandError, InvocationError, SlsError) as error:
        return Plan.failed(f"Unable to manage file: {error}")
    if new == old:
        return Plan.unchanged(f"Crontab for user {user} is in the correct state")
    changes = {"diff": diffs.unified(old, new)}

    def work() -> Outcome:
        if error := cron_spool.install(ctx.host, user, new.decode("utf-8", "surrogateescape")):
            return Outcome(f"Unable to update user {user} crontab. Error: {error}", ok=False)
        return Outcome(f"Crontab for user {user} was updated", changes)

    would = f"The following values are set to be changed:\ndiff: {changes['diff']}\n"
    step = Step(f"replace the cron table of {user}", work, FileChange(f"crontab of {user}", old, new))
    return Plan.change(would, [step])


def env_present(ctx: Context, name: str, value: object = None, user: str = "root") -> Plan:
    """Set an environment variable in a user's cron table: add it, or change its value."""
    wanted = cron_table.env_value(value)
    there = [each["value"] for each in _table(ctx, user)["env"] if each["name"] == name]
    if there and there[0] == wanted:
        return Plan.unchanged(f"Cron env {name} already present")
    would = f"Cron env {name} is set to be {_WILL['update' if there else 'absent']}"

    def work() -> Outcome:
        return _outcome(ctx.call("cron.set_env", user, name, value), "Cron env", name, user, "\n")

    return Plan.change(would, [Step(f"set a variable in the cron table of {user}", work)])


def env_absent(ctx: Context, name: str, user: str = "root") -> Plan:
    """Remove an environment variable from a user's cron table. Nothing happens if the table does not have it."""
    variable = str(name).strip()
    if not any(each["name"] == variable for each in _table(ctx, user)["env"]):
        return Plan.unchanged(f"Cron env {variable} {'is' if ctx.test else 'already'} absent")

    def work() -> Outcome:
        return _outcome(ctx.call("cron.rm_env", user, variable), "Cron env", variable, user, "")

    return Plan.change(
        f"Cron env {variable} is set to be removed", [Step(f"remove a variable from the cron table of {user}", work)]
    )


def _source(ctx: Context, name: object, source_hash: str, template: str | None, values: Mapping[str, object]) -> bytes:
    """Return the content of the first source of ``cron.file`` that exists, verified and rendered.

    Raises CommandError if no source exists or verification fails, InvocationError for an invalid argument, SlsError if
    the template fails.
    """
    wanted = FileVerification(source_hash, skip_verify=not source_hash)
    try:
        address, place, _ = find(ctx, name, ctx.saltenv, str(name), wanted)
    except Missing:
        listed = ", ".join(str(each) for each in (name if isinstance(name, list) else [name]))
        raise CommandError(f"Source file {listed} not found in saltenv '{ctx.saltenv}'") from None
    data = place.read_bytes()
    if not template:
        return data
    return ctx.templates.render(data.decode(), template, values, saltenv=ctx.saltenv, source=address).encode()


_WILL: Mapping[str, str] = {"absent": "added", "update": "updated"}

#: Return of the ``cron`` module -> end of the comment.
_DONE: Mapping[str, str] = {"new": "added to", "removed": "removed from"}


def _outcome(done: str, kind: str, name: str, user: str, gap: str) -> Outcome:
    if done == "updated":
        return Outcome(f"{kind} {name} updated", {user: name})
    if done in _DONE:
        return Outcome(f"{kind} {name} {_DONE[done]} {user}'s crontab", {user: name})
    if done in ("present", "absent"):
        return Outcome(f"{kind} {name} already {done}")
    raise StateFailure(f"{kind} {name} for user {user} failed to commit with error {gap}{done}")


def _table(ctx: Context, user: str) -> dict[str, list[dict[str, object]]]:
    """Return a user's cron table as ``{"pre", "crons", "special", "env"}``, each a list.

    It is empty for an unknown user: in test mode, an earlier state may be going to create the user.
    """
    if accounts.find(ctx.host, user) is None:
        return {"pre": [], "crons": [], "special": [], "env": []}
    return dict(ctx.call("cron.list_tab", user))
