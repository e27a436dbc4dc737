"""Renders and compiles reactor SLS with the state engine. A reactor without reactions does not import this module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from saltern.kit.config.master import MasterOptions, as_opts
from saltern.kit.trees.served_files import file_server
from statecore.compile import compile_sls
from statecore.loader.tables import Table
from statecore.model.errors import Mark, SlsError, SlsFault
from statecore.model.time_limit import ComputedTooMuch, computing_limit
from statecore.model.types import Low
from statecore.render import SlsSource, SlsTree
from statecore.render.limit import MASTER_RENDER_TIME_LIMIT, limit_message, limit_of_master
from statecore.runtime.calls import Returned
from statecore.runtime.runtime import Runtime

_ENVIRONMENT = "base"


def runtime_of(options: MasterOptions) -> Runtime:
    """Return the Runtime in which a master's reactor renders its SLS files and calls execution functions: statecore's loader with
    the master's options as ``opts``, the files of the master's ``file_roots``, and an empty pillar.

    ``options``: the configuration of the master. Nothing is started or connected.
    """
    opts = as_opts(options, file_client="local")
    return Runtime(opts, files=file_server(options), pillar={})


class ReactorSls:
    """Renders reactor SLS files and calls execution functions, with one Runtime for the whole reactor process. Only
    one thread may use it.
    """

    def __init__(self, options: MasterOptions) -> None:
        self._runtime = runtime_of(options)

    def fetch(self, name: str) -> Path | None:
        """Return the local path of a file of the state tree; None if the file does not exist."""
        return self._runtime.files.fetch(name, _ENVIRONMENT)

    def call(self, fun: str, args: Sequence[object], kwargs: Mapping[str, object]) -> Returned:
        """Run an execution function in the reactor's process; return its Returned (value, success and more)."""
        return self._runtime.call(fun, args, kwargs)

    def chunks(self, path: Path, tag: str, data: Mapping[str, object]) -> Sequence[Low]:
        """Return the low chunks of a reactor SLS file, rendered for an event, in order.

        Raises SlsError, also for a rendering that takes longer than ``master_render_time_limit``; OSError,
        UnicodeDecodeError.
        """
        seconds = limit_of_master(self._runtime.opts)
        try:
            with computing_limit(seconds, MASTER_RENDER_TIME_LIMIT) if seconds else nullcontext():
                return self._chunks(path, tag, data)
        except ComputedTooMuch as error:
            raise SlsError([SlsFault(limit_message(error), Mark(str(path), 1))]) from error

    def _chunks(self, path: Path, tag: str, data: Mapping[str, object]) -> Sequence[Low]:
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
