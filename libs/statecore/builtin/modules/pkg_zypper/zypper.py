"""Helpers of ``pkg`` on SUSE: they run zypper and read its answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from statecore.builtin.modules.pkg_rpm import rpm
from statecore.host.detached_run import run_detached
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.ports import CommandResult, ManagedHost
from statecore.model.text_lines import lines_of
from statecore.system.packages import package_requests

#: Exit codes of zypper that are no errors: done (0), updates are available (100, 101), a reboot or a restart of zypper is needed
#: (102, 103), no repository is defined (6), a repository was left out (106), a script of an installed package failed (107).
DONE = frozenset((0, 100, 101, 102, 103, 6, 106, 107))

#: Exit codes of a command that did all of its work.
COMPLETE = frozenset((0, 100, 101, 102, 103))

#: Seconds for which zypper waits until another program releases the lock of the package management.
_LOCK_SECONDS = 600

#: Environment of every command.
_ENVIRONMENT: Mapping[str, str] = {**rpm.ENVIRONMENT, "ZYPP_LOCK_TIMEOUT": str(_LOCK_SECONDS)}

#: Scratch key that the pkg states set when a run begins: fetch the metadata before the next installation.
_REFRESH_DUE = "pkg.refresh_due"

#: Packages of one command line.
BATCH = 500

#: Advice after a killed command.
_MEND = "Run 'zypper verify' and 'rpm --rebuilddb' on the host, then this state again."


def words(arguments: Sequence[str], root: object = None, *, xml: bool = False, refresh: bool = False) -> list[str]:
    """Return the command line of zypper for a command and its options.

    ``xml``: zypper answers with XML. ``refresh``: zypper may fetch metadata that is old. ``root``: directory that is used as
    ``/``.
    """
    fixed = ["--no-refresh"] if not refresh and "--no-refresh" not in arguments else []
    where = ["--root", str(root)] if root else []
    return ["zypper", "--non-interactive", *(["--xmlout"] if xml else []), *fixed, *where, *arguments]


def query(ctx: Context, *arguments: str, root: object = None) -> CommandResult:
    """Run a zypper command that changes nothing and takes no lock. Raise CommandError if it fails."""
    result = ctx.host.run(words(arguments, root), env={**_ENVIRONMENT, "ZYPP_READONLY_HACK": "1"})
    _checked(result)
    return result


def query_xml(ctx: Context, *arguments: str, root: object = None, check: bool = True) -> ElementTree.Element:
    """Run a zypper command that changes nothing and takes no lock. Return the root of its XML.

    Raise CommandError if it fails (with ``check``), or if the answer is no XML.
    """
    env = {**_ENVIRONMENT, "ZYPP_READONLY_HACK": "1"}
    result = ctx.host.run(words(arguments, root, xml=True), env=env)
    if check:
        _checked(result, xml=True)
    return _parsed(result)


def order_xml(ctx: Context, *arguments: str, root: object = None, refresh: bool = False) -> ElementTree.Element:
    """Run a zypper command that takes the lock of the package management, and return the root of its XML. Raise CommandError
    if it fails.
    """
    result = ctx.host.run(words(arguments, root, xml=True, refresh=refresh), env=_ENVIRONMENT)
    _checked(result, xml=True)
    return _parsed(result)


def order(ctx: Context, *arguments: str, root: object = None, refresh: bool = False) -> str:
    """Run a zypper command that takes the lock of the package management, and return its output. Raise CommandError if it
    fails.
    """
    result = ctx.host.run(words(arguments, root, refresh=refresh), env=_ENVIRONMENT)
    _checked(result)
    return result.stdout


def run_change(host: ManagedHost, arguments: Sequence[str], root: object = None) -> CommandResult:
    """Run a zypper command that changes packages, and return its result. Daemons that scripts of packages start keep running
    after the command.
    """
    return run_detached(host, words(arguments, root), env=_ENVIRONMENT)


def errors(result: CommandResult) -> list[str]:
    """Return the errors of a zypper command as texts; [] for an exit code that is no error."""
    if result.retcode in DONE:
        return []
    output = "\n".join(text for text in (result.stderr.strip(), result.stdout.strip()) if text)
    return package_requests.refusal("zypper", result._replace(stderr=output), _MEND)


def refresh(
    ctx: Context, *, force: bool | None, root: object, trust_keys: bool, repositories: Sequence[str] = ()
) -> dict[str, bool]:
    """Fetch the metadata of the repositories. Return a map of repository to True (fetched) or False (up to date).

    ``force``: fetch it even if it is not old; None: as the pillar ``zypper:refreshdb_force`` says, True by default.
    ``trust_keys``: import new keys of repositories without a question. Raise CommandError if zypper fails.
    """
    ctx.scratch.pop(_REFRESH_DUE, None)
    if force is None:
        settings = ctx.pillar.get("zypper")
        force = bool(settings.get("refreshdb_force", True)) if isinstance(settings, Mapping) else True
    arguments = [*(["--gpg-auto-import-keys"] if trust_keys else []), "refresh", *(["--force"] if force else [])]
    return parse_refresh(order(ctx, *arguments, *repositories, root=root, refresh=True))


def parse_refresh(text: str) -> dict[str, bool]:
    """Parse the output of ``zypper refresh``: a map of repository to True (fetched) or False (up to date)."""
    found: dict[str, bool] = {}
    for line in map(str.strip, lines_of(text)):
        quoted = line.split("'")
        if len(quoted) < 2:
            continue
        if line.startswith("Repository") and "is up to date" in line:
            found[quoted[1].strip()] = False
        elif line.startswith("Building") and "done" in line:
            found[quoted[1].strip()] = True
    return found


def _checked(result: CommandResult, *, xml: bool = False) -> None:
    if result.retcode in DONE:
        return
    told = ""
    if xml:
        try:
            found = ElementTree.fromstring(result.stdout)
            told = "\n".join((each.text or "").strip() for each in found.iter("message") if each.get("type") == "error")
        except ElementTree.ParseError:
            told = result.stderr.strip()
    else:
        told = "\n".join(text for text in (result.stderr.strip(), result.stdout.strip()) if text)
    raise CommandError(f"Zypper command failure: {told or f'exit code {result.retcode}, see /var/log/zypper.log'}")


def _parsed(result: CommandResult) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(result.stdout)
    except ElementTree.ParseError as error:
        told = result.stderr.strip() or result.stdout.strip()[:200]
        raise CommandError(f"zypper's answer is no XML ({error}), exit code {result.retcode}: {told}") from error
