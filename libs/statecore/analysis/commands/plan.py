"""``statecore plan`` predicts the changes of a state run and can store the plan in a file; ``statecore apply``
executes a state run, or the plan in such a file.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from statecore.analysis.commands.exit_codes import CommandFault, Exit
from statecore.analysis.commands.minion_options import (
    MinionOptions,
    add_options,
    cachedir_of,
    parsed_options,
    runtime_of,
)
from statecore.analysis.inspection.plan import Planned, apply, plan
from statecore.analysis.plan_text import plan_text
from statecore.analysis.planfile import PlanFault, PlanFile, drift, opened, plan_data, sealed
from statecore.analysis.prediction import PredictedOutcome
from statecore.host.content import atomic_file, private_files
from statecore.model.text_lines import lines_of
from statecore.model.types import Running
from statecore.runtime.runtime import Runtime
from statecore.runtime.state_runs.running_jobs import ProcDirectory
from statecore.runtime.state_runs.state_queue import taken


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command-line options of ``statecore plan``."""
    parser.add_argument("sls", nargs="*", metavar="SLS", help="SLS to plan (default: those that the top file assigns)")
    parser.add_argument(
        "--grains", default="", metavar="FILE", help="file of grains, YAML or JSON (default: the grains of this host)"
    )
    add_options(parser)
    parser.add_argument("--out", choices=("text", "json"), default="text", help="output format (default: text)")
    parser.add_argument("--out-file", metavar="PLANFILE", help="store the plan in this file, for statecore apply")
    parser.add_argument("--all", action="store_true", help="also show states that would not change")
    parser.add_argument("--exit-code", action="store_true", help="exit with 4 if something would change")


def run(given: argparse.Namespace) -> tuple[int, str]:
    """Run ``statecore plan`` and return (exit code, output). Raise CommandFault for unusable options, SlsError if the
    tree does not compile.
    """
    options = parsed_options(given, grains=given.grains)
    slses = _split(given.sls)
    with runtime_of(options) as runtime:
        planned = _planned(runtime, slses)
    if given.out_file:
        _keep(
            Path(given.out_file),
            sealed(planned.predictions, planned.places, _run(options, slses), secrets.token_bytes(16)),
        )
    data = plan_data(planned.predictions, planned.places)
    text = (
        json.dumps({"version": 1, **data}, indent=2)
        if given.out == "json"
        else plan_text(data, everything=given.all, shorten=_relative)
    )
    verdicts = {each.verdict for each in planned.predictions}
    if PredictedOutcome.FAIL in verdicts:
        return Exit.FAILED, text
    changing = given.exit_code and verdicts & {PredictedOutcome.CHANGE, PredictedOutcome.UNKNOWN}
    return (Exit.CHANGES if changing else Exit.OK), text


def _planned(runtime: Runtime, slses: Sequence[str] | None) -> Planned:
    return plan(runtime.run_parts({"test": True}), slses)


def _run(options: MinionOptions, slses: Sequence[str] | None) -> dict[str, object]:
    return {"setting": options.as_data(), "sls": list(slses) if slses is not None else None}


def _keep(path: Path, data: PlanFile) -> None:

    try:
        atomic_file.write(path, f"{json.dumps(data, indent=1)}\n", private_files.FILE_MODE)
    except OSError as error:
        raise CommandFault(f"the plan cannot be kept in {path}: {error.strerror}") from error


def _split(words: Sequence[str]) -> list[str] | None:

    return [each for word in words for each in word.split(",") if each] or None


# ---------------------------------------------------------------------------------------------------------------------- apply


def configure_apply(parser: argparse.ArgumentParser) -> None:
    """Add the command-line options of ``statecore apply``."""
    parser.add_argument(
        "what", nargs="*", metavar="PLANFILE|SLS", help="a plan file written by plan --out-file, or SLS to apply"
    )
    parser.add_argument("--highstate", action="store_true", help="apply the SLS that the top file assigns")
    parser.add_argument(
        "--grains", default="", metavar="FILE", help="file of grains, YAML or JSON (default: the grains of this host)"
    )
    add_options(parser)
    parser.add_argument("--out", choices=("text", "json"), default="text", help="output format (default: text)")
    parser.add_argument(
        "--cachedir",
        metavar="DIR",
        help="directory for backups of replaced files and for records of running state jobs (default: the minion's cachedir)",
    )
    parser.add_argument("--queue", action="store_true", help="wait while another state run is in progress")


def run_apply(given: argparse.Namespace) -> tuple[int, str]:
    """Run ``statecore apply`` and return (exit code, output). Raise CommandFault for unusable options and for a plan
    file that is out of date, SlsError if the tree does not compile.
    """
    if bool(given.what) == given.highstate:
        raise CommandFault("apply takes a plan file, or SLS, or --highstate alone")
    file = _plan_file(given.what)
    if file is not None:
        return _apply_file(file, given)
    options = parsed_options(given, grains=given.grains)
    with _running(options, given) as runtime:
        return _applied(runtime, _planned(runtime, _split(given.what)), given.out)


@contextmanager
def _running(options: MinionOptions, given: argparse.Namespace) -> Iterator[Runtime]:

    cachedir = _cache(options, given)
    with (
        job(cachedir, given.what) as jobs,
        runtime_of(options, keep=cachedir, jobs=jobs) as runtime,
        exclusive_run(runtime, queue=given.queue),
    ):
        yield runtime


def _plan_file(words: Sequence[str]) -> Path | None:
    """Return the path of the plan file (written by ``statecore plan --out-file``) if it is the only argument of
    ``statecore apply``; None if the arguments are SLS references.
    """
    if len(words) == 1 and (Path(words[0]).is_file() or "/" in words[0] or words[0].endswith(".json")):
        return Path(words[0])
    return None


def _apply_file(file: Path, given: argparse.Namespace) -> tuple[int, str]:
    try:
        kept = opened(file.read_text("utf-8"))
        options = MinionOptions.from_data(kept["run"]["setting"])
        slses = _references(kept["run"]["sls"])
    except PlanFault as fault:
        raise CommandFault(f"{file} cannot be applied: {fault}", Exit.DATA) from fault
    except (KeyError, TypeError) as error:
        raise CommandFault(f"{file} cannot be applied: it does not say which run it plans", Exit.DATA) from error
    except UnicodeDecodeError as error:
        raise CommandFault(f"{file} cannot be applied: it is no text", Exit.DATA) from error
    except OSError as error:
        raise CommandFault(f"the plan file {file} cannot be read: {error.strerror}", Exit.DATA) from error
    with _running(options, given) as runtime:
        planned = _planned(runtime, slses)
        now = sealed(planned.predictions, planned.places, kept["run"], bytes.fromhex(kept["salt"]))
        if found := drift(kept, json.loads(json.dumps(now))):
            lines = "\n".join(f"  {line}" for line in found)
            raise CommandFault(
                f"nothing was done: this is no longer what {file} was made of\n{lines}\n"
                "make the plan anew: statecore plan --out-file",
                Exit.DRIFTED,
            )
        return _applied(runtime, planned, given.out)


def _references(kept: object) -> list[str] | None:
    """Check and return the field ``sls`` of a plan file (written by ``statecore plan --out-file``): the list of SLS
    references that the plan was made for, or None for those of the top file. Raise TypeError for any other value.
    """
    if kept is not None and not (isinstance(kept, list) and all(isinstance(each, str) for each in kept)):
        raise TypeError("not the SLS of a run")
    return kept


def _applied(runtime: Runtime, planned: Planned, out: str) -> tuple[int, str]:
    running = apply(runtime.run_parts({"test": False}), planned)
    failed = any(entry["result"] is False for entry in running.values())
    text = json.dumps(running, indent=2, default=str) if out == "json" else "\n".join(_results(running, planned))
    return (Exit.FAILED if failed else Exit.OK), text


def _results(running: Running, planned: Planned) -> Iterator[str]:
    counts = {"changed": 0, "failed": 0, "unchanged": 0}
    for name, entry in sorted(running.items(), key=lambda item: int(item[1]["__run_num__"])):
        what = "failed" if entry["result"] is False else "changed" if entry["changes"] else "unchanged"
        counts[what] += 1
        if what == "unchanged":
            continue
        at = planned.places.get(name, "")
        where = f", {_relative(at)}" if at else ""
        yield f"{'!' if what == 'failed' else '~'} {entry['name']} (ID {entry['__id__']}{where}): {what}"
        yield from (f"    {line}" for line in lines_of(str(entry["comment"])))
    yield ", ".join(f"{number} {what}" for what, number in counts.items())


def _cache(options: MinionOptions, given: argparse.Namespace) -> str:
    """Return the directory for backups and for the records of running jobs.

    It is ``--cachedir``, else the configuration's, else Salt's own for root, else ``statecore`` in the user's cache
    directory.
    """
    if named := given.cachedir or cachedir_of(options):
        return str(Path(named).absolute())
    if os.geteuid() == 0:
        return "/var/cache/salt/minion"
    return str(Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "statecore")


def _relative(position: str) -> str:
    return position.removeprefix(f"{Path.cwd()}/")


@contextmanager
def job(cachedir: str, words: Sequence[str]) -> Iterator[ProcDirectory]:
    """Yield the ProcDirectory of the jobs that run on this host. While the block runs, it lists this process too, as a
    job of ``state.apply`` with the arguments ``words``.

    Raise CommandFault if the directory cannot be written: other processes could not see this run.
    """
    try:
        jobs = ProcDirectory(Path(cachedir) / "proc")
        jid = datetime.now(UTC).strftime("%Y%m%d%H%M%S%f")
        record = jobs.record({"jid": jid, "fun": "state.apply", "arg": list(words), "tgt": "statecore"})
        with record:
            yield jobs
    except OSError as error:
        raise CommandFault(
            f"cachedir: {cachedir} cannot be written: {error.strerror} (--cachedir names another)"
        ) from error


@contextmanager
def exclusive_run(runtime: Runtime, *, queue: bool) -> Iterator[None]:
    """Run the block while no other state run of this host is in progress; with ``queue``, wait for other runs to end.

    Raise CommandFault with one sentence for each run in progress.
    """
    with taken(runtime.context, True if queue else None) as refused:
        if refused:
            running = "\n".join(refused)
            raise CommandFault(f"nothing was done: {running}\nwait for it, or let apply do that: --queue", Exit.BUSY)
        yield
