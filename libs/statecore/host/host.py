"""The managed host: this machine, or a system mounted in a directory. All access to files, users and programs goes
through it.

Paths are the host's own paths. In a mounted root they are resolved component by component: an absolute symbolic link
starts at the root again, and ``..`` stops at the root, so no path leads outside. ``rooted_path`` ensures the same at
the time of use. Commands of a mounted root run in a chroot, which needs root and a userland; with ``host_pid`` they run
in the host's namespaces.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import logging
import os
import pwd
import signal
import stat
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from statecore.host import capabilities, namespaces
from statecore.host.beneath import MAX_LINKS
from statecore.host.rooted_path import below
from statecore.model.errors import HostError
from statecore.model.lazy import lazy_module
from statecore.model.log_levels import unlogged
from statecore.model.ports import CommandResult
from statecore.model.text_lines import lines_of, text_of

if TYPE_CHECKING:
    import subprocess

    from statecore.model import log_text
else:
    subprocess = lazy_module("subprocess")
    log_text = lazy_module("statecore.model.log_text")

log = logging.getLogger(__name__)

#: Default PATH of the host.
HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Account(NamedTuple):
    """One user account of the managed host: the fields of a line of /etc/passwd."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str


class Host:
    """The managed host: runs commands, resolves paths, looks up users and groups. Implements ``ports.ManagedHost``."""

    def __init__(self, root: str | Path = "/", *, host_pid: bool = False, keeps: Collection[str] = ()) -> None:
        """Manage the system whose ``/`` is the directory ``root`` of this process.

        ``keeps``: names of capabilities that commands of a mounted host keep, of those that they lose (``capabilities.LOST``).

        ``host_pid``: process 1 is the host's init (a container that shares the host's PID namespace). With the default
        ``root``, the root of process 1 is then the host's root.
        """
        self._host_pid = host_pid
        self._root = Path(namespaces.FIRST / "root" if host_pid and str(root) == "/" else root).absolute()
        self._mounted = str(self._root) != "/"
        self._keeps = frozenset(keeps)
        #: Takes capabilities from a command of a mounted host; made before the first one.
        self._dropper: Callable[[], None] | None = None
        #: Class of the paths of this host; see ``rooted_path``.
        self._place = below(self._root)
        #: Path -> ((mtime in ns, size), parsed lines): /etc/passwd and /etc/group are parsed again only after a change.
        self._parsed: dict[str, tuple[tuple[int, int], list[list[str]]]] = {}
        #: Environment variables for commands of a mounted host, which do not inherit those of this process.
        self._variables: dict[str, str] = {}

    @property
    def root(self) -> Path:
        """Path of the host's ``/`` for this process."""
        return self._root

    @property
    def mounted(self) -> bool:
        """True when the host's root is not ``/``."""
        return self._mounted

    def path(self, path: str, *, follow: bool = True) -> Path:
        """Convert the host's absolute path to a path for this process. The last component is resolved only if
        ``follow``.

        Raises HostError for a relative path, a null byte, and links in a loop.
        """
        if not path.startswith("/"):
            raise HostError(f"'{path}' is not an absolute path")
        if "\0" in path:
            raise HostError(f"{path!r} holds a null byte")
        if not self._mounted:
            return _followed(path) if follow else Path(path)
        waiting = [part for part in reversed(path.split("/")) if part not in ("", ".")]
        at: list[str] = []
        links = 0
        while waiting:
            part = waiting.pop()
            if part == "..":
                if at:
                    at.pop()
                continue
            target = _link(self._root.joinpath(*at, part)) if waiting or follow else None
            if target is not None:
                links += 1
                if links > MAX_LINKS:
                    raise HostError(f"'{path}': too many levels of symbolic links")
                if target.startswith("/"):
                    at = []
                waiting.extend(piece for piece in reversed(target.split("/")) if piece not in ("", "."))
                continue
            at.append(part)
        return self._place(self._root, *at)

    def run(
        self,
        cmd: str | Sequence[str],
        *,
        shell: str | None = None,
        cwd: str | None = None,
        runas: str | None = None,
        group: str | None = None,
        env: Mapping[str, str] | None = None,
        clean_env: bool = False,
        stdin: str | bytes | None = None,
        umask: int | None = None,
        timeout: float | None = None,
        merge_stderr: bool = False,
        quiet: bool = False,
    ) -> CommandResult:
        """Run a command on the host, wait for its end, and return its exit code and output. A text runs through
        ``shell``. ``timeout`` is in seconds.

        After the timeout the command and its children are ended. The level debug of the log shows the command, unless
        ``quiet``, and never its output. Raises HostError when the command cannot be started.
        """
        logged = log.isEnabledFor(logging.DEBUG) and not (quiet or unlogged.get())
        started = time.monotonic() if logged else 0.0
        # Arguments of functions become words of commands, and YAML makes a number of a name such as 7.
        argv = [shell or "/bin/sh", "-c", cmd] if isinstance(cmd, str) else [str(word) for word in cmd]
        self._startable(argv[0])
        if cwd is not None and not (cwd.startswith("/") and self.path(cwd).is_dir()):
            raise HostError(f"Specified cwd '{cwd}' either not absolute or does not exist")
        account = self._account(runas) if runas is not None else None
        ids = self._identity(account, group)
        directory = cwd or (account.home if account else "/root" if os.geteuid() == 0 else None)
        if logged:
            _log_start(cmd, directory, runas, group)
        try:
            # In this process: the child only makes system calls.
            drop = self._drop_capabilities()
            with self._namespaces() as entered:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if merge_stderr else subprocess.PIPE,
                    env=self._environment(env, account, shell, clean=clean_env),
                    # A process group of its own, so that the timeout also ends the command's children.
                    start_new_session=True,
                    preexec_fn=lambda: self._enter(
                        entered, ids, directory, required=cwd is not None, umask=umask, drop=drop
                    ),
                )
        except (OSError, subprocess.SubprocessError) as error:
            raise HostError(self._why_not(argv[0], runas, error)) from error
        data = stdin.encode() if isinstance(stdin, str) else stdin
        out, err, timed_out = communicate(process, data, timeout)
        if logged:
            ended = "timed out" if timed_out else f"exit code {process.returncode}"
            took = (time.monotonic() - started) * 1000
            log.debug("Command of process %s ended after %.1f ms: %s", process.pid, took, ended)
        return CommandResult(
            retcode=process.returncode,
            stdout=out.decode("utf-8", "replace"),
            stderr=err.decode("utf-8", "replace"),
            pid=process.pid,
            timed_out=timed_out,
        )

    def lines(self, cmd: Sequence[str]) -> Generator[bytes, None, int]:
        """Run a program on the host and yield each line of its output, and of its standard error, as it is printed. The
        generator returns the exit code. Raises HostError when the program cannot be started.
        """
        argv = [str(word) for word in cmd]
        self._startable(argv[0])
        drop = self._drop_capabilities()
        try:
            with self._namespaces() as entered:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=self._environment(None, None, None, clean=False),
                    preexec_fn=lambda: self._enter(
                        entered, (None, None, None), None, required=False, umask=None, drop=drop
                    ),
                )
        except (OSError, subprocess.SubprocessError) as error:
            raise HostError(self._why_not(argv[0], None, error)) from error
        with process:
            if process.stdout is not None:
                yield from process.stdout
        return process.returncode

    def mount_table(self) -> str:
        """Return the mount table as proc(5) mountinfo. For a mounted host: the mounts below its root, with the host's
        paths.

        Raise HostError if the kernel's table cannot be read.
        """
        table = namespaces.FIRST / "mountinfo" if self._host_pid else Path("/proc/self/mountinfo")
        try:
            # Bytes of a path that are not UTF-8 must stay the same when the path is mounted again.
            text = text_of(table, "surrogateescape")
        except OSError as error:
            raise HostError(f"{table} cannot be read: {error.strerror}") from error
        return _below(text, self._root) if self._mounted and not self._host_pid else text

    def which(self, program: str) -> str | None:
        """Return the host's absolute path of a program; None when the host has no such program."""
        candidates = [program] if program.startswith("/") else [f"{place}/{program}" for place in self._search_path()]
        for candidate in candidates:
            try:
                mode = self.path(candidate).stat().st_mode
            except (OSError, HostError):
                continue
            if stat.S_ISREG(mode) and mode & 0o111:
                return candidate
        return None

    def uid(self, user: str | int) -> int:
        """Return the numeric id of a user. Raises HostError for an unknown name."""
        if not isinstance(user, str | int):
            raise HostError(f"{user!r} is the name of no user")
        if isinstance(user, int) or user.isdecimal():
            return int(user)
        return self._account(user).uid

    def gid(self, group: str | int) -> int:
        """Return the numeric id of a group. Raises HostError for an unknown name."""
        if not isinstance(group, str | int):
            raise HostError(f"{group!r} is the name of no group")
        if isinstance(group, int) or group.isdecimal():
            return int(group)
        if not self._mounted:
            try:
                return grp.getgrnam(group).gr_gid
            except KeyError:
                raise HostError(f"Group {group} is not available") from None
        for line in self._lines("/etc/group", 3):
            if line[0] == group:
                return int(line[2])
        raise HostError(f"Group {group} is not available")

    def login_group(self, user: str | int) -> int:
        """Return the numeric id of a user's primary group. Raises HostError for an unknown user."""
        return self._account(str(user)).gid

    def user_name(self, uid: int) -> str:
        """Return the name of a user id; the number as text when it has no name."""
        if not self._mounted:
            try:
                return pwd.getpwuid(uid).pw_name
            except KeyError:
                return str(uid)
        return next((line[0] for line in self._lines("/etc/passwd", 7) if line[2] == str(uid)), str(uid))

    def group_name(self, gid: int) -> str:
        """Return the name of a group id; the number as text when it has no name."""
        if not self._mounted:
            try:
                return grp.getgrgid(gid).gr_name
            except KeyError:
                return str(gid)
        return next((line[0] for line in self._lines("/etc/group", 3) if line[2] == str(gid)), str(gid))

    # ---------------------------------------------------------------------------------------------------------- users, files

    def _account(self, user: str) -> Account:
        if not self._mounted:
            try:
                found = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
            except KeyError:
                raise HostError(f"User {user} is not available") from None
            return Account(found.pw_name, found.pw_uid, found.pw_gid, found.pw_dir, found.pw_shell)
        for line in self._lines("/etc/passwd", 7):
            if user in (line[0], line[2]):
                return Account(line[0], int(line[2]), int(line[3]), line[5], line[6])
        raise HostError(f"User {user} is not available")

    def _supplementary(self, account: Account) -> list[int]:
        if not self._mounted:
            return os.getgrouplist(account.name, account.gid)
        member_of = [int(line[2]) for line in self._lines("/etc/group", 4) if account.name in line[3].split(",")]
        return [account.gid, *member_of]

    def _lines(self, path: str, fields: int) -> list[list[str]]:

        try:
            real = self.path(path)
            state = real.stat()
            known = self._parsed.get(path)
            if known is None or known[0] != (state.st_mtime_ns, state.st_size):
                lines = [line.split(":") for line in lines_of(text_of(real))]
                known = (
                    (state.st_mtime_ns, state.st_size),
                    [line for line in lines if len(line) > 2 and line[2].isdecimal()],
                )
                self._parsed[path] = known
        except OSError:
            return []
        return [line for line in known[1] if len(line) >= fields]

    # ------------------------------------------------------------------------------------------------------------- commands

    def _startable(self, program: str) -> None:
        if not self._mounted:
            return
        if program.startswith("/") and self.which(program) is None:
            raise HostError(
                f"the host at {self._root} has no {program}: it is a plain directory tree without a userland"
                if not self.path("/bin").exists() and not self.path("/usr/bin").exists()
                else f"the host at {self._root} has no program {program}"
            )
        if os.geteuid() != 0:
            way = "entering its namespaces, which" if self._host_pid else "chroot, and chroot"
            raise HostError(f"running '{program}' in the host mounted at {self._root} needs {way} needs root")

    def _namespaces(self) -> contextlib.AbstractContextManager[namespaces.Namespaces | None]:
        return namespaces.of_first(self._root) if self._host_pid else contextlib.nullcontext()

    def _identity(self, account: Account | None, group: str | None) -> tuple[int | None, int | None, list[int] | None]:
        """Return (uid, gid, supplementary groups) for a command; None keeps the current one. Raise HostError if only
        root may run the command as this user, or if the group does not exist.
        """
        if account is None:
            return (None, self.gid(group), None) if group else (None, None, None)
        if os.geteuid() not in (0, account.uid):
            raise HostError(f"running as {account.name} needs root")
        gid = self.gid(group) if group else account.gid
        return account.uid, gid, self._supplementary(account) if os.geteuid() == 0 else None

    def set_variable(self, name: str, value: str | None) -> None:
        """Set an environment variable for later commands of a mounted host; None removes it.

        On this machine it has no effect: commands inherit the environment variables of this process.
        """
        if value is None:
            self._variables.pop(name, None)
        else:
            self._variables[name] = value

    def _environment(
        self, env: Mapping[str, str] | None, account: Account | None, shell: str | None, *, clean: bool
    ) -> dict[str, str]:
        if clean:
            base: dict[str, str] = {}
        elif self._mounted:
            base = {"PATH": HOST_PATH, "HOME": "/root", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
            base |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
            base |= self._variables
        else:
            # Modules parse and compare messages, so they must be in English on every machine.
            base = {**os.environ, "LC_ALL": "C.UTF-8", "LANGUAGE": "C"}
        if account is not None:
            # As ``su -s``: the shell that runs the command, as the account's own may be nologin.
            base |= {"HOME": account.home, "USER": account.name, "LOGNAME": account.name}
            base["SHELL"] = shell or account.shell
        return base | dict(env or {})

    def _drop_capabilities(self) -> Callable[[], None] | None:
        """Return the function by which a command loses capabilities; None if it loses none: on the minion's own machine, and
        in the namespaces of ``host_pid``, where commands are those of the machine.
        """
        if not self._mounted or self._host_pid:
            return None
        if self._dropper is None:
            self._dropper = capabilities.dropper(self._keeps)
        return self._dropper

    def _enter(
        self,
        entered: namespaces.Namespaces | None,
        ids: tuple[int | None, int | None, list[int] | None],
        directory: str | None,
        *,
        required: bool,
        umask: int | None,
        drop: Callable[[], None] | None,
    ) -> None:
        """Prepare the child process before the program starts: root, capabilities, directory, ids, umask. Raises OSError
        if the kernel refuses.

        chroot, chdir and setgroups come first: they need root. A required directory may be closed to the user, as in
        Salt.
        """
        if entered is not None:
            entered.enter()
        elif self._mounted:
            os.chroot(self._root)
        if self._mounted:
            os.chdir("/")
        if drop is not None:
            drop()
        missed = directory is not None and not _entered(directory)
        uid, gid, groups = ids
        if groups is not None:
            os.setgroups(groups)
        if gid is not None:
            os.setgid(gid)
        if uid is not None:
            os.setuid(uid)
        if umask is not None:
            os.umask(umask)
        if missed and directory is not None:
            # A file system may be open to the user and not to root.
            if required:
                os.chdir(directory)
            else:
                # A command runs even when the user's home directory does not exist.
                _entered(directory)

    def _why_not(self, program: str, runas: str | None, error: Exception) -> str:
        where = f" in the host at {self._root}" if self._mounted else ""
        number = getattr(error, "errno", None)
        if number == errno.ENOENT:
            return f"Unable to run command '{program}'{where}: no such program"
        return f"Unable to run command '{program}'{where}" + (f" as {runas}" if runas else "") + f": {error}"

    def _search_path(self) -> list[str]:
        own = HOST_PATH if self._mounted else os.environ.get("PATH", "") + ":" + HOST_PATH
        return [place for place in own.split(":") if place.startswith("/")]


def _log_start(cmd: str | Sequence[str], directory: str | None, runas: str | None, group: str | None) -> None:
    by = (f" as user '{runas}'" if runas else "") + (f" with group '{group}'" if group else "")
    where = f" in directory '{directory}'" if directory else ""
    log.debug("Executing command %s%s%s", log_text.command_text(cmd), by, where)


def _entered(directory: str) -> bool:
    """Change this process's directory. Return True if that was possible."""
    try:
        os.chdir(directory)
    except OSError:
        return False
    return True


def _followed(path: str) -> Path:

    place = Path(path)
    if not place.is_symlink():
        return place
    try:
        return place.resolve()
    except RuntimeError as error:
        raise HostError(f"'{path}': too many levels of symbolic links") from error


def _link(place: Path) -> str | None:

    try:
        return str(place.readlink())
    except OSError:
        return None


def _below(table: str, root: Path) -> str:
    """Return the lines of a mount table whose mount points are below ``root``, relative to it, as the kernel shows
    after a chroot.
    """
    top = str(root).replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011").replace("\n", "\\012")
    kept = []
    for line in lines_of(table):
        words = line.split(" ")
        if f"{words[4]}/".startswith(f"{top}/"):
            words[4] = words[4][len(top) :] or "/"
            kept.append(" ".join(words))
    return "".join(f"{line}\n" for line in kept)


#: Seconds between SIGTERM and SIGKILL.
_GRACE = 2.0


def communicate(
    process: subprocess.Popen[bytes], data: bytes | None, timeout: float | None
) -> tuple[bytes, bytes, bool]:
    """Return (stdout, stderr, timed out) of a process that leads its own process group. ``timeout`` is in seconds.

    After the timeout the whole group gets SIGTERM, then SIGKILL.
    """
    try:
        out, err = process.communicate(data, timeout)
    except subprocess.TimeoutExpired:
        _signal_group(process, signal.SIGTERM)
        last = _ended(process)
        # Also when the command has ended: its children may ignore SIGTERM without having a pipe open.
        _signal_group(process, signal.SIGKILL)
        out, err = last or _ended(process) or _what_there_is(process)
        return out, err, True
    return out or b"", err or b"", False


def _ended(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes] | None:

    try:
        out, err = process.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        return None
    return out or b"", err or b""


def _what_there_is(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:

    try:
        out, err = process.communicate(timeout=0)
    except subprocess.TimeoutExpired as late:
        out, err = late.output or b"", late.stderr or b""
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    process.wait()
    return out or b"", err or b""


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
