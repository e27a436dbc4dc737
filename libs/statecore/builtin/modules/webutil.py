"""Users in files of Apache's ``htpasswd``: Salt's ``webutil`` execution module. The host needs the program htpasswd."""

from __future__ import annotations

from statecore.model.context import Context
from statecore.model.text_lines import lines_of


def available(ctx: Context) -> str | None:
    """Return None if the host has the program ``htpasswd``; else return the reason as text."""
    return None if ctx.host.which("htpasswd") else "the host has no program htpasswd (package apache2-utils)"


def useradd(
    ctx: Context, pwfile: str, user: str, password: str, opts: str = "", runas: str | None = None
) -> dict[str, object]:
    """Add a user to an htpasswd file, or change its password. Return a map with pid, retcode, stdout and stderr of
    htpasswd. A missing file is created.

    opts
        further letters of options, such as ``B`` for bcrypt
    runas
        user who runs htpasswd

    CLI Example:

        salt '*' webutil.useradd /etc/httpd/htpasswd larry badpassword
    """
    letters = opts if ctx.host.path(pwfile).exists() else f"{opts}c"
    done: dict[str, object] = _htpasswd(ctx, [f"-b{letters}", pwfile, user, password], runas)
    return done


def userdel(
    ctx: Context, pwfile: str, user: str, runas: str | None = None, all_results: bool = False
) -> list[str] | dict[str, object] | str:
    """Delete a user from an htpasswd file. Return the lines of htpasswd's output, with ``all_results`` a map with
    its pid, retcode, stdout and stderr; a sentence if there is no such file.

    CLI Example:

        salt '*' webutil.userdel /etc/httpd/htpasswd larry
    """
    if not ctx.host.path(pwfile).exists():
        return "Error: The specified htpasswd file does not exist"
    done = _htpasswd(ctx, ["-D", pwfile, user], runas)
    if all_results:
        return done
    return lines_of("\n".join(str(done[key]) for key in ("stdout", "stderr") if done[key]))


def verify(ctx: Context, pwfile: str, user: str, password: str, opts: str = "", runas: str | None = None) -> bool:
    """Return whether an htpasswd file has the user with this password; False if there is no such file.

    CLI Example:

        salt '*' webutil.verify /etc/httpd/htpasswd larry maybepassword
    """
    if not ctx.host.path(pwfile).exists():
        return False
    # A wrong password is an answer, not a failure of the job.
    return _htpasswd(ctx, [f"-bv{opts}", pwfile, user, password], runas, ignore_retcode=True)["retcode"] == 0


def _htpasswd(ctx: Context, words: list[str], runas: str | None, **options: object) -> dict[str, object]:
    # The command has the password in clear text, so it must not be logged.
    given = {"runas": runas, "python_shell": False, "output_loglevel": "quiet", **options}
    done: dict[str, object] = ctx.call("cmd.run_all", ["htpasswd", *words], **given)
    return done
