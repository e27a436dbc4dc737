"""``file.patch``: a patch applied to a file, or to files below a directory, by the host's program ``patch``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from statecore.builtin.states.file.arguments import Refused, local_path, step
from statecore.builtin.states.file.content import Spec, wanted_bytes
from statecore.model.context import Context
from statecore.model.errors import HostError
from statecore.model.ports import CommandResult
from statecore.model.text_lines import lines_of
from statecore.model.types import Outcome, Plan
from statecore.sources.file_source import FileVerification

#: Options of ``patch`` that this state sets itself.
_NOT_ALLOWED = ("-N", "--forward", "-r", "--reject-file", "-o", "--output")

#: Arguments of older Salt versions; ignored with a warning.
_IGNORED = ("hash", "dry_run_first")

#: Function -> arguments that its ``**kwargs`` takes.
OPTIONS: Mapping[str, frozenset[str]] = {"patch": frozenset(_IGNORED)}

_MARGIN = " " * 14


@dataclass(frozen=True, slots=True)
class _Patch:
    """A patch to apply: its text, the program ``patch`` with its options, and the file or directory to change."""

    ctx: Context
    program: str
    options: tuple[str, ...]
    #: Command-line arguments that select the file or directory.
    target: tuple[str, ...]
    text: bytes

    def run(self, *more: str) -> CommandResult:
        """Run the host's program ``patch`` with additional options and return its exit code and output.

        The patch text is its standard input, so the host needs no copy of it.
        """
        return self.ctx.host.run([self.program, *self.options, *more, *self.target], stdin=self.text)


def patch(
    ctx: Context,
    name: str,
    source: str | list[object] | None = None,
    source_hash: str | None = None,
    source_hash_name: str | None = None,
    skip_verify: bool = False,
    template: str | None = None,
    context: Mapping[str, object] | None = None,
    defaults: Mapping[str, object] | None = None,
    options: str = "",
    reject_file: str | None = None,
    strip: int | None = None,
    saltenv: str | None = None,
    **kwargs: object,
) -> Plan:
    """Apply a patch to the file ``name``, or to files below the directory ``name``.

    source, source_hash, source_hash_name, skip_verify, template, context, defaults
        the patch; same arguments as in ``file.managed``
    options
        additional options of the program ``patch``
    strip
        number of leading path components to remove from the paths in the patch, for a directory; default 0
    reject_file
        file for the parts of the patch that do not apply

    The host needs the program ``patch``. Salt: salt/states/file.py, patch.
    """
    ignored = tuple(argument for argument in _IGNORED if argument in kwargs)
    try:
        plan = _planned(
            ctx,
            name,
            source,
            FileVerification(source_hash or "", source_hash_name, skip_verify),
            Spec(saltenv or ctx.saltenv, template, context, defaults),
            _sorted_options(options, strip),
            reject_file,
        )
    except (Refused, HostError) as error:
        plan = Plan.failed(str(error))
    texts = tuple(f"The '{argument}' argument is no longer used and has been ignored." for argument in ignored)
    return plan._replace(warnings=(*plan.warnings, *texts))


def _planned(
    ctx: Context,
    name: str,
    source: object,
    wanted: FileVerification,
    spec: Spec,
    options: tuple[tuple[str, ...], int | None],
    reject_file: str | None,
) -> Plan:
    program = ctx.host.which("patch")
    if program is None:
        raise Refused("patch executable not found on minion")
    place = local_path(ctx, name)
    if not place.exists():
        raise Refused(f"{name} does not exist")
    if not source:
        raise Refused("source is required: the URL or path of the patch")
    if reject_file is not None and not local_path(ctx, reject_file).parent.is_dir():
        raise Refused(f"Parent directory for reject_file '{reject_file}' either does not exist, or is not a directory")
    content = wanted_bytes(ctx, spec, None, source, name, wanted=wanted).data
    own, strip = options
    target = ("-d", name, f"-p{strip or 0}") if place.is_dir() else (name,)
    command = _Patch(ctx, program, own, target, content if isinstance(content, bytes) else content.read_bytes())
    dry_run = command.run("--forward", "--dry-run", "--reject-file=-")
    if dry_run.retcode == 0:
        return Plan.change(
            "The patch would be applied", (step(f"patch {name}", lambda: _applied(command)),), _result_changes(dry_run)
        )
    if dry_run.retcode == 1 and command.run("--reverse", "--force", "--dry-run", "--reject-file=-").retcode == 0:
        return Plan.unchanged("Patch was already applied")
    if dry_run.retcode != 1:
        raise Refused(dry_run.stderr.strip() or dry_run.stdout.strip())
    return Plan.failed(_rejection(command, dry_run, reject_file))


def _rejection(command: _Patch, dry_run: CommandResult, reject_file: str | None) -> str:
    """Return the comment of ``file.patch`` for a patch that does not apply. Rejected parts go to ``reject_file``, in
    test mode too.
    """
    lines = ["Patch would not apply cleanly, no changes made. Results of dry-run are below."]
    if reject_file is None:
        lines[0] += " Run state again using the reject_file option to save rejects to a persistent file."
    else:
        saved = command.run("--forward", f"--reject-file={reject_file}", "--output=/dev/null")
        # Its last line names the reject file, as Salt's comment does.
        dry_run = saved if "saving rejects" in saved.stdout else dry_run
    output = lines_of(dry_run.stdout + dry_run.stderr)
    return "\n".join([*lines, "", *(f"{_MARGIN}{line}" for line in output)])


def _applied(command: _Patch) -> Outcome:
    result = command.run("--forward", "--reject-file=-")
    good = result.retcode == 0
    return Outcome("Patch successfully applied" if good else "Failed to apply patch", _result_changes(result), ok=good)


def _result_changes(result: CommandResult) -> dict[str, object]:
    return {"retcode": result.retcode, "stdout": result.stdout.rstrip(), "stderr": result.stderr.rstrip()}


def _sorted_options(options: str, strip: int | None) -> tuple[tuple[str, ...], int | None]:
    """Return (options for the program ``patch`` without ``-p`` and ``--strip``, number of path components to strip).
    Raises Refused for an option that the state does not allow, and for text that is no list of options.
    """
    try:
        words = shlex.split(str(options or ""))
    except ValueError as error:
        raise Refused(f"options cannot be read: {error}") from error
    refused = [word for word in words if word.startswith(_NOT_ALLOWED)]
    if refused:
        raise Refused(f"The following CLI options are not allowed: {', '.join(refused)}")
    kept: list[str] = []
    following = iter(words)
    for word in following:
        if not word.startswith(("-p", "--strip")):
            kept.append(word)
            continue
        given = word[2:] if word.startswith("-p") else word.partition("=")[2] or next(following, "")
        if not given.isdecimal():
            option = "-p" if word.startswith("-p") else "--strip"
            raise Refused(
                f"Invalid format for '{option}' CLI option. Consider using the 'strip' option for this state."
            )
        strip = int(given)
    return tuple(kept), strip
