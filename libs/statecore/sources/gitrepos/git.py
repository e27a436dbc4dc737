"""The git command: its environment variables for a remote, its start, and its error messages.

No secret is on a command line: git asks for passwords, and a helper answers from environment variables.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from statecore.host.content import private_files
from statecore.model.errors import StatecoreError
from statecore.model.lazy import lazy_module
from statecore.model.text_lines import lines_of
from statecore.sources.gitrepos.remotes import GitRemote, authority, without_password

if TYPE_CHECKING:
    import subprocess
else:
    subprocess = lazy_module("subprocess")

#: Time limit in seconds for a command that reads the mirror.
_READ_SECONDS = 60.0

#: Seconds with less than one byte per second from a server, until git ends the transfer.
_SILENT_SECONDS = "60"

#: Shell helper that answers git's question for a password from an environment variable.
_HELPER = (
    '!f() { test "$1" = get && printf "username=%s\\npassword=%s\\n" "$SALTERN_GIT_USER" "$SALTERN_GIT_PASSWORD"; }; f'
)


#: Shell helper that answers ssh's question for the passphrase of a key from an environment variable.
_ASKPASS = '#!/bin/sh\nprintf "%s\\n" "$SALTERN_GIT_PASSPHRASE"\n'


#: git's message when ssh cannot reach the server.
_UNREACHED = "fatal: Could not read from remote repository."


class GitFault(StatecoreError):
    """Error: git failed or is not installed. The text is git's last message, without passwords."""


def git_environment(remote: GitRemote, git_dir: Path, home: Path) -> dict[str, str]:
    """Return the environment variables of a git command for a remote and its mirror ``git_dir``. ``home``: directory
    for the host keys of SSH servers.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = {
        # The process of a container may have another user id than the owner of the mirror.
        "safe.directory": "*",
        "gc.autoDetach": "false",
        "maintenance.autoDetach": "false",
        "http.lowSpeedLimit": "1",
        "http.lowSpeedTime": _SILENT_SECONDS,
        **({} if remote.ssl_verify else {"http.sslVerify": "false"}),
        **({"http.proxy": remote.proxy} if remote.proxy else {}),
    }
    pairs = list(settings.items())
    if remote.user and (server := authority(remote.url)):
        pairs += [("credential.helper", ""), (f"credential.{server}.helper", _HELPER)]
        kept |= {"SALTERN_GIT_USER": remote.user, "SALTERN_GIT_PASSWORD": remote.password}
    if remote.passphrase:
        # Use the helper whether there is a terminal or not.
        kept |= {"SSH_ASKPASS": str(_askpass(home)), "SSH_ASKPASS_REQUIRE": "force"}
        kept |= {"SALTERN_GIT_PASSPHRASE": remote.passphrase}
    for number, (name, value) in enumerate(pairs):
        kept[f"GIT_CONFIG_KEY_{number}"], kept[f"GIT_CONFIG_VALUE_{number}"] = name, value
    kept |= {
        "GIT_CONFIG_COUNT": str(len(pairs)),
        "GIT_DIR": str(git_dir),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_SSH_COMMAND": _ssh(remote, home),
        "LC_ALL": "C",
        "LANGUAGE": "C",
    }
    return kept


def _ssh(remote: GitRemote, home: Path) -> str:
    hosts = f'UserKnownHostsFile="{home / "known_hosts"}" ~/.ssh/known_hosts'
    # Batch mode does not ask for a passphrase. Without batch mode, all other questions must be disabled.
    batch = ["NumberOfPasswordPrompts=1", "PasswordAuthentication=no", "KbdInteractiveAuthentication=no"]
    asked = batch if remote.passphrase else ["BatchMode=yes"]
    words = ["ssh", *(word for each in [*asked, "StrictHostKeyChecking=accept-new", hosts] for word in ("-o", each))]
    if remote.privkey:
        words += ["-i", remote.privkey, "-o", "IdentitiesOnly=yes"]
    return shlex.join(words)


def _askpass(home: Path) -> Path:
    """Return the path of the helper script that ssh runs to ask for the passphrase of a key. The passphrase is only in
    the helper's environment. Raises GitFault if the script cannot be written.
    """
    place = home / "askpass"
    try:
        if not place.exists():
            with private_files.writer(place, executable=True) as file:
                file.write(_ASKPASS.encode())
    except OSError as error:
        raise GitFault(f"{error.filename or place}: {error.strerror}") from error
    return place


def run_git(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: bytes | None = None,
    stdout: int | None = None,
    check: bool = True,
    timeout: float | None = None,
) -> bytes:
    """Run the git command with the arguments ``words`` and return its standard output as bytes. Raises GitFault when
    git fails; without ``check``, a failure returns b"".

    ``stdout`` is a file descriptor that receives the output instead. ``timeout`` is in seconds.
    """
    try:
        done = subprocess.run(
            ["git", *words],
            env=environment,
            input=stdin if stdin is not None else b"",
            stdout=subprocess.PIPE if stdout is None else stdout,
            stderr=subprocess.PIPE,
            timeout=timeout or _READ_SECONDS,
            check=False,
            # What git makes in the mirror is private, too.
            umask=0o777 & ~private_files.DIRECTORY_MODE,
        )
    except FileNotFoundError as error:
        raise GitFault("there is no program git here; install it, or take git out of the options") from error
    except OSError as error:
        raise GitFault(f"git cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise GitFault(f"git {words[0]} takes longer than {error.timeout:g} seconds") from error
    if done.returncode and check:
        raise GitFault(f"git {words[0]}: {_last(done.stderr) or f'exit code {done.returncode}'}")
    return done.stdout or b"" if not done.returncode else b""


def _last(output: bytes) -> str:
    """Return the reason of a failure from git's error output: its lines "fatal:" and "error:", else its last line, without
    passwords.
    """
    lines = [line.strip() for line in lines_of(output.decode("utf-8", "replace")) if line.strip()]
    named = [line for line in lines if line.startswith(("fatal:", "error:"))]
    if named and named[0] == _UNREACHED and (before := lines.index(_UNREACHED)):
        # ssh has already written the reason.
        named = [lines[before - 1], *named]
    return without_password("; ".join(named[:2]) or (lines[-1] if lines else ""))
