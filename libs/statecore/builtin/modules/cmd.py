"""Commands on the managed host: Salt's ``cmd`` execution module.

A command given as text runs through a shell if ``python_shell`` is true, if an operator called the function directly
(the runtime then sets ``ctx.scratch["cmd.shell"]``), or if the option ``cmd_safe`` is False. Otherwise the text is
split into words and runs without a shell, so that a value that a template inserts cannot start another command. The
command's exit code becomes the job's return code, through ``ctx.scratch["retcode"]``.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from statecore.host.content import managed_file, private_files
from statecore.model import tree_url
from statecore.model.context import Context
from statecore.model.errors import CommandError, HostError, InvocationError
from statecore.model.lazy import lazy_module
from statecore.model.log_levels import GARBAGE, PROFILE, TRACE, unlogged
from statecore.model.ports import CommandResult
from statecore.model.redaction import is_quiet
from statecore.model.text_lines import lines_of

if TYPE_CHECKING:
    from statecore.model import log_text
else:
    log_text = lazy_module("statecore.model.log_text")

log = logging.getLogger(__name__)

#: Exit code reported for a command that was killed after its timeout.
_TIMED_OUT = 1


class CommandReturn(TypedDict):
    """Map that ``cmd.run_all`` returns: pid, retcode, stdout and stderr of the command. ``retcode`` is None for a
    command that still runs in the background.
    """

    pid: int
    retcode: int | None
    stdout: str
    stderr: str
    #: True if ``cmd.script`` did not find its script.
    cache_error: NotRequired[bool]


def run(
    ctx: Context,
    cmd: object,
    cwd: str | None = None,
    stdin: str | None = None,
    runas: str | None = None,
    group: str | None = None,
    shell: str | None = None,
    python_shell: bool | None = None,
    env: object = None,
    clean_env: bool = False,
    template: str | None = None,
    rstrip: bool = True,
    umask: object = None,
    output_encoding: str | None = None,
    output_loglevel: str = "debug",
    log_callback: object = None,
    hide_output: bool = False,
    timeout: float | None = None,
    reset_system_locale: bool = True,
    ignore_retcode: bool = False,
    saltenv: str | None = None,
    bg: bool = False,
    password: str | None = None,
    encoded_cmd: bool = False,
    raise_err: bool = False,
    prepend_path: str | None = None,
    success_retcodes: object = None,
    success_stdout: object = None,
    success_stderr: object = None,
    **kwargs: object,
) -> str:
    r"""Run a command and return its standard output and standard error, mixed.

    cwd, runas, group, umask
        working directory, user, group and octal umask of the command
    stdin
        text for the command's standard input
    shell, python_shell
        path of the shell; True: run ``cmd`` through it
    env, clean_env, prepend_path
        environment variables (a map or a list of maps); True: no other variables; directories to put in front of PATH
    template
        renderer for the command
    timeout
        seconds after which the command is killed
    ignore_retcode
        True: the exit code does not become the job's return code
    success_retcodes, success_stdout, success_stderr
        exit codes, or parts of the output, that count as success
    bg
        True: do not wait for the command
    hide_output
        True: return ""
    use_vt
        True: run the command on a pseudo terminal, which joins its output and errors. The host needs the program script.
    raise_err
        True: raise CommandError for an exit code other than 0

    CLI Example:

        salt '*' cmd.run "ls -l | awk '/foo/{print \$2}'"
    """
    options = _options(locals())
    result = _run(ctx, cmd, options | {"merge_stderr": True})
    if raise_err and result["retcode"]:
        raise CommandError(f"Command '{_shown(cmd, options)}' failed with return code {result['retcode']}", result)
    return "" if hide_output else str(result["stdout"])


def run_stdout(ctx: Context, cmd: object, **kwargs: object) -> str:
    """Run a command and return its standard output. The arguments are those of ``cmd.run``."""
    return "" if kwargs.get("hide_output") else str(_run(ctx, cmd, _checked(kwargs))["stdout"])


def run_stderr(ctx: Context, cmd: object, **kwargs: object) -> str:
    """Run a command and return its standard error. The arguments are those of ``cmd.run``."""
    return "" if kwargs.get("hide_output") else str(_run(ctx, cmd, _checked(kwargs))["stderr"])


def run_all(ctx: Context, cmd: object, redirect_stderr: bool = False, **kwargs: object) -> CommandReturn:
    """Run a command and return a map with pid, retcode, stdout and stderr. The arguments are those of ``cmd.run``."""
    result = _run(ctx, cmd, _checked(kwargs) | {"merge_stderr": redirect_stderr})
    return result | {"stdout": "", "stderr": ""} if kwargs.get("hide_output") else result


def retcode(ctx: Context, cmd: object, **kwargs: object) -> int:
    """Run a command and return its exit code. The arguments are those of ``cmd.run``."""
    return int(_run(ctx, cmd, _checked(kwargs))["retcode"] or 0)


def shell(ctx: Context, cmd: str, **kwargs: Any) -> str:
    """Run a command through a shell and return its output. The arguments are those of ``cmd.run``.

    python_shell
        False: split the command into words and run it without a shell
    """
    return run(ctx, cmd, **({"python_shell": True} | kwargs))


def run_bg(ctx: Context, cmd: object, **kwargs: Any) -> dict[str, int]:
    """Start a command and return a map with its ``pid``, without waiting for its end. The arguments are those of
    ``cmd.run``.

    CLI Example:

        salt '*' cmd.run_bg "fstrim --all"
    """
    return {"pid": run_all(ctx, cmd, **(kwargs | {"bg": True}))["pid"]}


def shells(ctx: Context) -> list[str]:
    """Return the login shells of the host, in the order of its file /etc/shells; [] without this file.

    CLI Example:

        salt '*' cmd.shells
    """
    data = managed_file.read(ctx.host.path("/etc/shells"), "/etc/shells")
    lines = (line.strip() for line in lines_of((data or b"").decode("utf-8", "replace")))
    return [line for line in lines if line and not line.startswith("#")]


def tty(ctx: Context, device: str, echo: object = "") -> dict[str, str]:
    """Write a text to a terminal of the host. Return a map with one key, ``Success`` or ``Error``, whose value is a
    sentence.

    device
        a terminal such as tty1 or pts3
    echo
        the text

    CLI Example:

        salt '*' cmd.tty pts3 'This is a test'
    """
    if not re.fullmatch(r"tty\w*|pts/?\d+", device):
        return {"Error": "The specified device is not a valid TTY"}
    path = f"/dev/{device}" if device.startswith("tty") else f"/dev/pts/{device.removeprefix('pts').removeprefix('/')}"
    try:
        with ctx.host.path(path).open("wb") as terminal:
            terminal.write(str(echo).encode())
    except OSError:
        return {"Error": f"Echoing to {path} returned error"}
    return {"Success": f"Message was successfully echoed to {path}"}


def run_chroot(ctx: Context, root: str, cmd: str, **kwargs: Any) -> CommandReturn:
    """Run a shell command in a chroot on the host. Return a map with pid, retcode, stdout and stderr.

    To manage a mounted host, set the option ``host_root`` instead.
    """
    program = ctx.host.which("chroot")
    if program is None:
        raise CommandError("the host has no chroot program")
    return run_all(ctx, [program, root, "/bin/sh", "-c", cmd], **kwargs)


def script(
    ctx: Context,
    source: str,
    args: object = None,
    cwd: str | None = None,
    saltenv: str | None = None,
    template: str | None = None,
    context: Mapping[str, object] | None = None,
    defaults: Mapping[str, object] | None = None,
    **kwargs: Any,
) -> CommandReturn:
    """Copy a script to the host, run it and delete it. Return a map with pid, retcode, stdout and stderr.

    source
        ``salt://`` or a path of the host
    args
        arguments for the script, as text or as a list
    template, context, defaults
        renderer for the script, and the variables for it

    If the script does not exist, ``retcode`` is 1 and ``cache_error`` is True.

    CLI Example:

        salt '*' cmd.script salt://scripts/runme.sh 'arg1 arg2 "arg 3"'
    """
    environment = saltenv or ctx.saltenv
    content = _script_content(ctx, source, environment, template, {**(defaults or {}), **(context or {})})
    if content is None:
        return {"pid": 0, "retcode": 1, "stdout": "", "stderr": "", "cache_error": True}
    name = f"/tmp/.saltern-script-{os.urandom(8).hex()}"
    real_path = ctx.host.path(name)
    real_path.parent.mkdir(parents=True, exist_ok=True)
    script_file = private_files.new_file(real_path, executable=True)
    try:
        with script_file as file:
            file.write(content)
            if kwargs.get("runas"):
                os.fchown(file.fileno(), ctx.host.uid(kwargs["runas"]), -1)
        words = list(map(str, args)) if isinstance(args, list | tuple) else _words(str(args or ""))
        # A shell also runs a script without a `#!` line. The words are quoted, so that the shell expands nothing.
        return run_all(ctx, shlex.join([name, *words]), cwd=cwd, **(kwargs | {"python_shell": True}))
    finally:
        real_path.unlink(missing_ok=True)


def script_retcode(ctx: Context, source: str, args: object = None, cwd: str | None = None, **kwargs: Any) -> int:
    """Run a script as ``cmd.script`` does, but return only its exit code."""
    return int(script(ctx, source, args, cwd, **kwargs)["retcode"] or 0)


def which(ctx: Context, cmd: str) -> str | None:
    """Return the path of a program of the host, None if the host does not have it."""
    return ctx.host.which(cmd)


def which_bin(ctx: Context, cmds: Sequence[str]) -> str | None:
    """Return the path of the first program of the list ``cmds`` that the host has, None if it has none of them."""
    return next((path for cmd in cmds if (path := ctx.host.which(cmd))), None)


def has_exec(ctx: Context, cmd: str) -> bool:
    """Return whether the host has the program ``cmd``."""
    return ctx.host.which(cmd) is not None


def exec_code(ctx: Context, lang: str, code: object, cwd: str | None = None, args: object = None, **kwargs: Any) -> str:
    """Run source code with an interpreter of the host, such as python3. Return its standard output and standard error,
    mixed.

    Example: ``cmd.exec_code python3 'print(1)'``.
    """
    return run(ctx, _code(lang, args), cwd=cwd, stdin=_code_text(code), python_shell=False, **kwargs)


def exec_code_all(
    ctx: Context, lang: str, code: object, cwd: str | None = None, args: object = None, **kwargs: Any
) -> CommandReturn:
    """Run source code with an interpreter of the host, such as python3. Return a map with pid, retcode, stdout and stderr.

    Example: ``cmd.exec_code_all python3 'print(1)'``.
    """
    return run_all(ctx, _code(lang, args), cwd=cwd, stdin=_code_text(code), python_shell=False, **kwargs)


def _code(lang: str, args: object) -> list[str]:
    return [lang, "-", *(map(str, args) if isinstance(args, list) else shlex.split(str(args or "")))]


def _code_text(code: object) -> str:
    return ("\n".join(map(str, code)) if isinstance(code, list) else str(code)) + "\n"


# --------------------------------------------------------------------------------------------- running

#: Arguments of cmd.run that the functions taking ``**kwargs`` take too.
_ARGUMENTS = frozenset(
    {
        "cwd",
        "stdin",
        "runas",
        "group",
        "shell",
        "python_shell",
        "env",
        "clean_env",
        "template",
        "rstrip",
        "umask",
        "output_encoding",
        "output_loglevel",
        "log_callback",
        "hide_output",
        "timeout",
        "reset_system_locale",
        "ignore_retcode",
        "saltenv",
        "bg",
        "password",
        "encoded_cmd",
        "raise_err",
        "prepend_path",
        "success_retcodes",
        "success_stdout",
        "success_stderr",
        "use_vt",
        "redirect_stderr",
    }
)


def _options(local: Mapping[str, Any]) -> dict[str, object]:
    given = {name: value for name, value in local.items() if name in _ARGUMENTS}
    return _checked(given | local.get("kwargs", {}))


def _checked(kwargs: Mapping[str, object]) -> dict[str, Any]:
    given = {name: value for name, value in kwargs.items() if not name.startswith("__")}
    unknown = sorted(set(given) - _ARGUMENTS)
    if unknown:
        log.warning("cmd ignores the arguments %s, as in Salt", ", ".join(unknown))
        given = {name: value for name, value in given.items() if name in _ARGUMENTS}
    return given


def _run(ctx: Context, cmd: object, options: Mapping[str, Any]) -> CommandReturn:
    try:
        command = _command(ctx, cmd, options)
    except InvocationError:
        if not is_quiet(options):
            raise
        raise InvocationError("'REDACTED' cannot be split into words") from None
    _need(ctx, options)
    if options.get("bg"):
        command = _background(command)
    elif options.get("use_vt"):
        command = _on_terminal(ctx, command, options)
    result = ctx.host.run(
        command,
        shell=_shell(ctx, options),
        cwd=options.get("cwd"),
        runas=options.get("runas"),
        group=options.get("group"),
        env=_environment(ctx, options),
        clean_env=bool(options.get("clean_env")),
        stdin=_stdin(options.get("stdin")),
        umask=_octal(options.get("umask")),
        timeout=float(options["timeout"]) if options.get("timeout") else None,
        merge_stderr=bool(options.get("merge_stderr")),
        **({"quiet": True} if is_quiet(options) else {}),
    )
    if options.get("bg"):
        # The command still runs: it has no exit code and no output yet.
        return {"pid": int(result.stdout or 0), "retcode": None, "stdout": "", "stderr": ""}
    code = _judged(result, options)
    _log(cmd, result, code, options)
    if not options.get("ignore_retcode"):
        ctx.scratch["retcode"] = code
    if options.get("use_vt"):
        # As in Salt: what a terminal shows is not stripped.
        return {
            "pid": result.pid,
            "retcode": code,
            "stdout": result.stdout.replace("\r\n", "\n"),
            "stderr": result.stderr,
        }
    strip = options.get("rstrip", True)
    stdout = result.stdout.rstrip() if strip else result.stdout
    stderr = result.stderr.rstrip() if strip else result.stderr
    if result.timed_out:
        stdout = f"{stdout}\n{_shown(cmd, options)} : Timed out after {options['timeout']} seconds".lstrip()
    return {"pid": result.pid, "retcode": code, "stdout": stdout, "stderr": stderr}


#: Values of ``output_loglevel`` -> level of the log.
_LEVELS: Mapping[str, int] = {
    "all": GARBAGE,
    "garbage": GARBAGE,
    "trace": TRACE,
    "debug": logging.DEBUG,
    "profile": PROFILE,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}


def _log(cmd: object, result: CommandResult, code: int, options: Mapping[str, Any]) -> None:
    """Log the exit code and the output of a command with the level ``output_loglevel``; a failure of the command as an
    error.

    Nothing is logged for a quiet command. With ``ignore_retcode`` a failure is not an error, with ``hide_output`` the
    output is left out, ``log_callback`` replaces the text.
    """
    if is_quiet(options) or unlogged.get():
        return
    failed = bool(code) and not options.get("ignore_retcode")
    level = (
        logging.ERROR if failed else _LEVELS.get(str(options.get("output_loglevel", "debug")).lower(), logging.DEBUG)
    )
    if not log.isEnabledFor(level):
        return
    callback = options.get("log_callback")
    shown = callback if callable(callback) else str
    lines = []
    if code or level != logging.DEBUG:
        # As in Salt, only the program: the level error is logged everywhere, and the words may contain a password.
        words = [str(word) for word in cmd] if isinstance(cmd, list | tuple) else str(cmd).split()
        text = words[0] if words else ""
        how = "failed with" if failed else "ended with"
        lines.append(f"Command '{text}' {how} return code: {code}" + (" (timed out)" if result.timed_out else ""))
    if not options.get("hide_output"):
        outputs = (
            ("stdout" if not options.get("merge_stderr") else "output", result.stdout),
            ("stderr", result.stderr),
        )
        lines += [f"{name}: {log_text.clipped(text.rstrip())}" for name, text in outputs if text.strip()]
    for line in lines:
        log.log(level, "%s", shown(line))


def _command(ctx: Context, cmd: object, options: Mapping[str, Any]) -> str | list[str]:
    shell = options.get("python_shell")
    if isinstance(cmd, list | tuple):
        words = [str(word) for word in cmd]
        return shlex.join(words) if shell else words
    text = str(cmd)
    if options.get("template"):
        text = ctx.templates.render(text, str(options["template"]), {}, saltenv=options.get("saltenv") or ctx.saltenv)
    if shell is None:
        shell = ctx.scratch.get("cmd.shell") or ctx.opts.get("cmd_safe") is False
    return text if shell else _words(text)


#: Programs that are the shell of an account without a login.
_NO_SHELLS = frozenset({"nologin", "false", "true", "sync"})


def _shell(ctx: Context, options: Mapping[str, Any]) -> str:
    """Return the path of the shell for a command: the argument ``shell``, the option ``command_shell``, ``$SHELL`` of this
    process as in Salt, or /bin/sh.

    ``$SHELL`` counts only if the managed host has it and it is no shell like nologin.
    """
    if chosen := options.get("shell") or ctx.opts.get("command_shell"):
        return str(chosen)
    own = os.environ.get("SHELL", "")
    usable = own.startswith("/") and own.rpartition("/")[2] not in _NO_SHELLS and ctx.host.which(own) is not None
    return own if usable else "/bin/sh"


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InvocationError(f"'{text}' cannot be split into words: {error}") from error


def _background(command: str | list[str]) -> list[str]:
    """Return a shell command that starts ``command`` in the background and prints its process id."""
    text = command if isinstance(command, str) else shlex.join(command)
    return ["/bin/sh", "-c", f"( {text}\n) </dev/null >/dev/null 2>&1 & echo $!"]


def _on_terminal(ctx: Context, command: str | list[str], options: Mapping[str, Any]) -> list[str]:
    """Return the command that runs ``command`` on a pseudo terminal, by the host's program script(1).

    Raises CommandError if the host does not have the program.
    """
    program = ctx.host.which("script")
    if program is None:
        raise CommandError("use_vt: the host has no program script; install the package bsdutils or util-linux")
    shell = _shell(ctx, options)
    text = shlex.join([shell, "-c", command]) if isinstance(command, str) else shlex.join(command)
    return [program, "--quiet", "--return", "--command", text, "/dev/null"]


def _need(ctx: Context, options: Mapping[str, Any]) -> None:
    """Raise CommandError, in Salt's words, if the options of a command name a shell or a user that the host does not
    have.
    """
    if options.get("shell") and ctx.host.which(str(options["shell"])) is None:
        raise CommandError(f"The shell {options['shell']} is not available")
    if options.get("runas") is not None:
        try:
            ctx.host.uid(options["runas"])
        except HostError:
            raise CommandError(f"User '{options['runas']}' is not available") from None


def _environment(ctx: Context, options: Mapping[str, object]) -> dict[str, str]:
    given = options.get("env") or {}
    rows = given if isinstance(given, list) else [given]
    found: dict[str, str] = {}
    for row in rows:
        if not isinstance(row, Mapping):
            raise InvocationError(f"env must be a map or a list of maps, not {row!r}")
        found |= {str(name): str(value) for name, value in row.items()}
    if options.get("prepend_path"):
        found["PATH"] = f"{options['prepend_path']}:{found.get('PATH', os.environ.get('PATH', ''))}"
    return found


def _judged(result: CommandResult, options: Mapping[str, object]) -> int:
    """Return the exit code to report for a finished command: 0 if ``success_retcodes``, ``success_stdout`` or
    ``success_stderr`` match, 1 after a timeout, else its own exit code.
    """
    if result.timed_out:
        return _TIMED_OUT
    if result.retcode in _listed(options.get("success_retcodes"), int):
        return 0
    for name, text in (("success_stdout", result.stdout), ("success_stderr", result.stderr)):
        wanted = _listed(options.get(name), str)
        if any(str(part) in text for part in wanted):
            return 0
    return result.retcode


def _listed(value: object, kind: type[int] | type[str]) -> list[object]:
    if value is None:
        return []
    values = value if isinstance(value, list | tuple) else str(value).split(",")
    try:
        return [kind(item) for item in values]
    except ValueError as error:
        raise InvocationError(f"{value!r}: {error}") from error


def _octal(value: object) -> int | None:
    if value in (None, ""):
        return None
    try:
        return int(str(value), 8)
    except ValueError as error:
        raise InvocationError(f"Invalid umask: '{value}'") from error


def _stdin(value: object) -> str | None:
    return None if value is None else str(value).replace("\\n", "\n")


def _script_content(
    ctx: Context, source: str, saltenv: str, template: str | None, context: Mapping[str, object]
) -> bytes | None:
    if tree_url.is_tree_url(source):
        path, named = tree_url.split(source)
        found = ctx.files.fetch(path, named or saltenv)
    else:
        found = ctx.host.path(source.removeprefix("file://"))
    if found is None or not found.is_file():
        return None
    content = found.read_bytes()
    if template:
        return ctx.templates.render(content.decode(), template, context, saltenv=saltenv, source=source).encode()
    return content


def _shown(cmd: object, options: Mapping[str, object]) -> str:
    """Return the command as text for an error message; "REDACTED" (Salt's word) with ``output_loglevel: quiet``."""
    if is_quiet(options):
        return "REDACTED"
    return shlex.join(map(str, cmd)) if isinstance(cmd, list | tuple) else str(cmd)
