"""Reactor SLS as the state engine reads them. Its own module: a reactor with nothing to react to does not load the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from saltern.kit.config.master import MasterOptions, as_opts
from saltern.kit.trees.served_files import file_server
from statecore.compile import compile_sls
from statecore.loader.tables import Table
from statecore.model.errors import SlsError
from statecore.render import SlsSource, SlsTree
from statecore.runtime.calls import Returned
from statecore.runtime.runtime import Runtime

_ENVIRONMENT = "base"


def runtime_of(options: MasterOptions) -> Runtime:
    """statecore as reactor SLS see it: the master's options and state tree, no pillar."""
    opts = as_opts(options, file_client="local")
    return Runtime(opts, files=file_server(options), pillar={})


class ReactorSls:
    """The engine of one reactor; its modules belong to one thread."""

    def __init__(self, options: MasterOptions) -> None:
        self._runtime = runtime_of(options)

    def fetch(self, name: str) -> Path | None:
        """A file of the state tree, None where there is none."""
        return self._runtime.files.fetch(name, _ENVIRONMENT)

    def call(self, fun: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Returned:
        """Runs an execution function here."""
        return self._runtime.call(fun, args, kwargs)

    def chunks(self, path: Path, tag: str, data: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
        """The low chunks of a file for an event, in their order. Raises SlsError, OSError, UnicodeDecodeError."""
        runtime = self._runtime
        renderers = Table(runtime.loader, "renderers")
        renderers.attach(runtime.context)
        tree = SlsTree(
            runtime.files,
            opts=runtime.opts,
            grains=runtime.grains,
            pillar={},
            functions=runtime.functions,
            extra={"tag": tag, "data": data},
            renderers=renderers,
        )
        name = path.stem
        tree.add(SlsSource(name, _ENVIRONMENT, path.name, str(path), path.read_text("utf-8"), str(path)))
        compiled = compile_sls(tree, {_ENVIRONMENT: [name]}, runtime.opts)
        if compiled.faults:
            raise SlsError(compiled.faults)
        return tuple(compiled.graph.chunks[node.position] for node in compiled.graph.order if not node.check)
