"""Checks a stranger's tree for ``statecore check --untrusted``, which imports this module by its name.

The tree is rendered as the language server renders it: in a confined process, with functions that only compute.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from statecore.analysis.commands.exit_codes import CommandFault, Exit
from statecore.analysis.finding import Finding
from statecore.lsp.confinement import Confinement
from statecore.lsp.settings import Settings
from statecore.lsp.worker import CPU_SECONDS, Worker, WorkerFailed

log = logging.getLogger(__name__)


def findings_of(
    file_roots: Mapping[str, Sequence[str]], pillar: str, grains: str, id: str, saltenv: str, slses: Sequence[str]
) -> tuple[list[Finding], str]:
    """Return the findings about a tree, and a sentence about what does not confine the process that rendered it; "" if all
    parts do. ``slses`` limits the check to these SLS and globs. Paths are absolute; "" leaves an option out.

    Raise CommandFault if the process gives no answer within ``CPU_SECONDS``, or none that is made of findings.
    """
    worker = Worker(Settings(file_roots, pillar, grains, id, saltenv))
    try:
        answer = worker.ask("tree", CPU_SECONDS, sls=list(slses))
        listed = answer if isinstance(answer, list) else [answer]
        found = [Finding.from_data(one) for one in listed]
    except (WorkerFailed, ValueError) as error:
        raise CommandFault(f"the tree was not checked: {error}", Exit.ERRORS) from error
    finally:
        worker.stop()
    confinement = worker.confinement or Confinement()
    log.info("%s", confinement.text())
    return found, confinement.text() if confinement.missing else ""
