"""The managed host: this machine, or a system mounted somewhere below us. The only road to files, users and programs.

Paths are the host's own. In a mounted root they are resolved component by component: an absolute symlink starts again at
the root, ``..`` stops at it, so nothing ever leads outside; ``rooted_path`` keeps it so while they are used. Commands in a
mounted root run by chroot, which needs root and a userland in it; or, with ``host_pid``, in the host's own namespaces.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import signal
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from statecore.host import namespaces
from statecore.host.rooted_path import MAX_LINKS, below
from statecore.model.errors import HostError
from statecore.model.ports import CommandResult

#: Where programs of the host are looked for when nothing else says so.
HOST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Account(NamedTuple):
    """A line of /etc/passwd."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str


class Host:
    """Implements ports.ManagedHost."""

    def __init__(self, root: str | Path = "/", *, host_pid: bool = False) -> None:
        """``host_pid``: process 1 is the host's init; its root is the host's where no other is named."""
        self._host_pid = host_pid
        self._root = Path(namespaces.FIRST / "root" if host_pid and str(root) == "/" else root).absolute()
        self._mounted = str(self._root) != "/"
        #: Makes paths that no link, and no swap of one, leads out of the root.
        self._place = below(self._root)
        #: file -> (its state, its parsed lines); users and groups of a mounted host are read again only when they changed.
        self._parsed: dict[str, tuple[tuple[int, int], list[list[str]]]] = {}
        #: What commands of a mounted host get besides: our own variables say nothing about it.
        self._variables: dict[str, str] = {}

    @property
    def root(self) -> Path:
        """Where the host's ``/`` is for us."""
        return self._root

    @property
    def mounted(self) -> bool:
        """True when root is not ``/``."""
        return self._mounted

    def path(self, path: str, *, follow: bool = True) -> Path:
        """Our path for the host's absolute ``path``; the last component is followed only if ``follow``. Raises HostError."""
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
    ) -> CommandResult:
        """Runs on the host and waits; a str runs through ``shell``. Raises HostError when it cannot be started."""
        argv = [shell or "/bin/sh", "-c", cmd] if isinstance(cmd, str) else list(cmd)
        self._startable(argv[0])
        if cwd is not None and not (cwd.startswith("/") and self.path(cwd).is_dir()):
            raise HostError(f"Specified cwd '{cwd}' either not absolute or does not exist")
        account = self._account(runas) if runas is not None else None
        ids = self._identity(account, group)
        directory = cwd or (account.home if account else "/root" if os.geteuid() == 0 else None)
        try:
            with self._namespaces() as entered:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT if merge_stderr else subprocess.PIPE,
                    env=self._environment(env, account, clean=clean_env),
                    # A group of its own, so that a command out of time goes with all that it started.
                    start_new_session=True,
                    preexec_fn=lambda: self._enter(entered, ids, directory, required=cwd is not None, umask=umask),
                )
        except (OSError, subprocess.SubprocessError) as error:
            raise HostError(self._why_not(argv[0], runas, error)) from error
        data = stdin.encode() if isinstance(stdin, str) else stdin
        out, err, timed_out = said(process, data, timeout)
        return CommandResult(
            retcode=process.returncode,
            stdout=out.decode("utf-8", "replace"),
            stderr=err.decode("utf-8", "replace"),
            pid=process.pid,
            timed_out=timed_out,
        )

    def mount_table(self) -> str:
        """mountinfo(5) as a program of the host reads it: of a mounted host what is mounted in its root, by its own paths."""
        table = namespaces.FIRST / "mountinfo" if self._host_pid else Path("/proc/self/mountinfo")
        try:
            # Undecodable bytes of a path have to come back as they are when it is mounted again.
            text = table.read_text("utf-8", "surrogateescape")
        except OSError as error:
            raise HostError(f"{table} cannot be read: {error.strerror}") from error
        return _below(text, self._root) if self._mounted and not self._host_pid else text

    def which(self, program: str) -> str | None:
        """The host's absolute path of an executable, None when the host has none of this name."""
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
        """Numeric id of a user. Raises HostError for an unknown name."""
        if not isinstance(user, str | int):
            raise HostError(f"{user!r} is the name of no user")
        if isinstance(user, int) or user.isdecimal():
            return int(user)
        return self._account(user).uid

    def gid(self, group: str | int) -> int:
        """Numeric id of a group. Raises HostError for an unknown name."""
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
        """Numeric id of the group that a user has at login. Raises HostError for an unknown user."""
        return self._account(str(user)).gid

    def user_name(self, uid: int) -> str:
        """Name of a user id, the number as text when it has none."""
        if not self._mounted:
            try:
                return pwd.getpwuid(uid).pw_name
            except KeyError:
                return str(uid)
        return next((line[0] for line in self._lines("/etc/passwd", 7) if line[2] == str(uid)), str(uid))

    def group_name(self, gid: int) -> str:
        """Name of a group id, the number as text when it has none."""
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
        """Colon-separated lines of a file of the mounted host with at least so many fields; [] when there is no file."""
        try:
            real = self.path(path)
            state = real.stat()
            known = self._parsed.get(path)
            if known is None or known[0] != (state.st_mtime_ns, state.st_size):
                lines = [line.split(":") for line in real.read_text("utf-8", "replace").splitlines()]
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
        """(uid, gid, supplementary groups) to become; None: stay."""
        if account is None:
            return (None, self.gid(group), None) if group else (None, None, None)
        if os.geteuid() not in (0, account.uid):
            raise HostError(f"running as {account.name} needs root")
        gid = self.gid(group) if group else account.gid
        return account.uid, gid, self._supplementary(account) if os.geteuid() == 0 else None

    def set_variable(self, name: str, value: str | None) -> None:
        """Commands of a mounted host get this variable from now on; None: no more."""
        if value is None:
            self._variables.pop(name, None)
        else:
            self._variables[name] = value

    def _environment(self, env: Mapping[str, str] | None, account: Account | None, *, clean: bool) -> dict[str, str]:
        if clean:
            base: dict[str, str] = {}
        elif self._mounted:
            base = {"PATH": HOST_PATH, "HOME": "/root", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
            base |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
            base |= self._variables
        else:
            # Messages that are parsed or compared must not depend on the machine's language.
            base = {**os.environ, "LC_ALL": "C.UTF-8", "LANGUAGE": "C"}
        if account is not None:
            base |= {"HOME": account.home, "USER": account.name, "LOGNAME": account.name, "SHELL": account.shell}
        return base | dict(env or {})

    def _enter(
        self,
        entered: namespaces.Namespaces | None,
        ids: tuple[int | None, int | None, list[int] | None],
        directory: str | None,
        *,
        required: bool,
        umask: int | None,
    ) -> None:
        """In the child, before the program starts. The order matters: chroot and groups need root."""
        if entered is not None:
            entered.enter()
        elif self._mounted:
            os.chroot(self._root)
        if self._mounted:
            os.chdir("/")
        uid, gid, groups = ids
        if groups is not None:
            os.setgroups(groups)
        if gid is not None:
            os.setgid(gid)
        if uid is not None:
            os.setuid(uid)
        if umask is not None:
            os.umask(umask)
        if directory is not None:
            if required:
                os.chdir(directory)
            else:
                # A home that is not there is no reason to fail.
                with contextlib.suppress(OSError):
                    os.chdir(directory)

    def _why_not(self, program: str, runas: str | None, error: Exception) -> str:
        where = f" in the host at {self._root}" if self._mounted else ""
        number = getattr(error, "errno", None)
        if number == errno.ENOENT:
            return f"Unable to run command '{program}'{where}: no such program"
        return f"Unable to run command '{program}'{where}" + (f" as {runas}" if runas else "") + f": {error}"

    def _search_path(self) -> list[str]:
        own = HOST_PATH if self._mounted else os.environ.get("PATH", "") + ":" + HOST_PATH
        return [place for place in own.split(":") if place.startswith("/")]


def _followed(path: str) -> Path:
    """What a path of this machine leads to: a file is replaced where it is, not where a link to it is."""
    place = Path(path)
    if not place.is_symlink():
        return place
    try:
        return place.resolve()
    except RuntimeError as error:
        raise HostError(f"'{path}': too many levels of symbolic links") from error


def _link(place: Path) -> str | None:
    """A link's text; None for what is no link, is not there, or may not be looked at."""
    try:
        return str(place.readlink())
    except OSError:
        return None


def _below(table: str, root: Path) -> str:
    """The lines of a mount table whose mount points lie in a root, told from it; what the kernel tells after a chroot."""
    top = str(root).replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011").replace("\n", "\\012")
    kept = []
    for line in table.splitlines():
        words = line.split(" ")
        if f"{words[4]}/".startswith(f"{top}/"):
            words[4] = words[4][len(top) :] or "/"
            kept.append(" ".join(words))
    return "".join(f"{line}\n" for line in kept)


#: Seconds that a command which ran out of time has to end by itself before it is killed.
_GRACE = 2.0


def said(process: subprocess.Popen[bytes], data: bytes | None, timeout: float | None) -> tuple[bytes, bytes, bool]:
    """(stdout, stderr, whether it ran out of time) of a leader of its own group, which ends after so many seconds."""
    try:
        out, err = process.communicate(data, timeout)
    except subprocess.TimeoutExpired:
        _signal_group(process, signal.SIGTERM)
        last = _ended(process)
        # Also where the command itself has ended: what it left behind may ignore the first signal, and hold no pipe.
        _signal_group(process, signal.SIGKILL)
        out, err = last or _ended(process) or _what_there_is(process)
        return out, err, True
    return out or b"", err or b"", False


def _ended(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes] | None:
    """All output, once nobody has the pipes any more; None when somebody still has them after a while."""
    try:
        out, err = process.communicate(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        return None
    return out or b"", err or b""


def _what_there_is(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """The output so far: a process that left the group has the pipes, and lives on."""
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
