"""Salt's ``webutil`` states: users in files of Apache's ``htpasswd``. Salt 3008 no longer has these states."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.text_lines import lines_of, text_of
from statecore.model.types import Outcome, Plan, Step


def user_exists(
    ctx: Context,
    name: str,
    password: str | None = None,
    htpasswd_file: str | None = None,
    options: str = "",
    force: bool = False,
    runas: str | None = None,
    update: bool = False,
) -> Plan:
    """Add the user ``name`` to a file of htpasswd. Nothing happens if the user exists, unless ``force`` or ``update``
    is set; the state fails if htpasswd fails.

    password
        the password in clear text
    htpasswd_file
        path of the file; it is created if it is missing
    options
        further letters of htpasswd's options, such as ``B`` for bcrypt
    force
        True: set the password even if the user exists
    runas
        user who runs htpasswd
    update
        True: set the password if that of the user is another one
    """
    if not htpasswd_file:
        return Plan.failed("htpasswd_file is missing: the path of the file")
    changed = update and not force and not ctx.call("webutil.verify", htpasswd_file, name, password, options, runas)
    if _is_in(ctx, name, htpasswd_file) and not changed and not force:
        return Plan.unchanged("User already known")
    if password is None:
        return Plan.failed(f"password is missing: that of the user '{name}'")

    def work() -> Outcome:
        done = ctx.call("webutil.useradd", htpasswd_file, name, password, opts=options, runas=runas)
        return Outcome(str(done["stderr"]), {} if done["retcode"] else {name: True}, ok=not done["retcode"])

    would = f"User '{name}' is set to be added to htpasswd file"
    return Plan.change(would, [Step(f"add the user {name} to {htpasswd_file}", work)], {name: True})


def user_absent(ctx: Context, name: str, htpasswd_file: str | None = None, runas: str | None = None) -> Plan:
    """Delete the user ``name`` from a file of htpasswd. Nothing happens if the user does not exist; the state fails if
    htpasswd fails.

    htpasswd_file
        path of the file
    runas
        user who runs htpasswd
    """
    if not htpasswd_file:
        return Plan.failed("htpasswd_file is missing: the path of the file")
    if not _is_in(ctx, name, htpasswd_file):
        return Plan.unchanged("User already not in file")

    def work() -> Outcome:
        done = ctx.call("webutil.userdel", htpasswd_file, name, runas=runas, all_results=True)
        return Outcome(str(done["stderr"]), {} if done["retcode"] else {name: True}, ok=not done["retcode"])

    would = f"User '{name}' is set to be removed from htpasswd file"
    return Plan.change(would, [Step(f"delete the user {name} from {htpasswd_file}", work)], {name: True})


def _is_in(ctx: Context, name: str, file: str) -> bool:
    path = ctx.host.path(file)
    if not path.is_file():
        return False
    return any(line.startswith(f"{name}:") for line in lines_of(text_of(path)))
