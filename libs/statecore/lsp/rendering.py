"""Renders and checks files of a tree for one minion, with few rights: the answers of ``lsp/worker.py``.

A tree that is opened in an editor may be anybody's. Unless it is trusted, its templates call only functions that compute
(``PURE``), no code of the tree runs (modules, renderers in Python), no filter opens a connection or sees this machine's
files, no link leads out of its root, and no message is decrypted. What a template asks beyond that ends its rendering with
``NotInEditor``, and the editor says so. docs/decisions/ has the reasons.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jinja2

from statecore.analysis.commands.minion_options import mapping_in
from statecore.analysis.finding import Finding
from statecore.analysis.inspection.check import check, of_top
from statecore.analysis.inspection.templates import of_template
from statecore.lsp.catalogue import USERS, Catalogue
from statecore.lsp.findings import NOT_HERE, of_untrusted
from statecore.lsp.index import InTree, reference
from statecore.lsp.settings import Settings
from statecore.model.errors import Mark, NotAvailable, SlsError, StatecoreError
from statecore.model.ports import FileHash, Files, Function
from statecore.model.values import DELIMITER, traverse
from statecore.pillar import PillarFiles, compile_pillar
from statecore.render import SlsTree
from statecore.render.memory import RenderMemory
from statecore.render.renderers import RENDERERS
from statecore.runtime.runtime import Runtime, local_runtime
from statecore.runtime.state_runs.state_system import RunParts
from statecore.sources.local_tree import LocalFiles

log = logging.getLogger(__name__)

#: Execution functions that only compute: from their arguments, grains, pillar, options and files of the tree.
PURE = frozenset(
    {
        *(f"grains.{name}" for name in ("get", "has_value", "items", "item", "ls", "equals", "filter_by")),
        *(f"pillar.{name}" for name in ("get", "item", "items", "keys", "ls", "raw", "filter_by")),
        *(f"match.{name}" for name in ("glob", "pcre", "list", "grain", "grain_pcre", "pillar", "pillar_pcre")),
        *(f"match.{name}" for name in ("ipcidr", "compound", "filter_by", "search_by", "ifelse")),
        *(
            f"slsutil.{name}"
            for name in ("merge", "merge_all", "update", "boolstr", "banner", "file_exists", "dir_exists")
        ),
        *(f"defaults.{name}" for name in ("merge", "deepcopy", "update")),
        "config.option",
    }
)

#: Renderers that run no code but Jinja's sandbox, and need no key.
SAFE_RENDERERS = frozenset({"jinja", "yaml", "yamlex", "json", "text", "toml", "msgpack", "stateconf"})


class NotInEditor(StatecoreError):
    """A template asked for something that an untrusted tree does not get."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} {NOT_HERE}; lsp --trust and check without --untrusted run the code of a tree")


class Overlay(Files):
    """A state tree in which the texts of open documents replace the files on disk."""

    def __init__(
        self,
        files: LocalFiles,
        roots: Mapping[str, Sequence[str]],
        directory: Path,
        texts: Mapping[str, str],
    ) -> None:
        """Serve ``files``, whose root directories are ``roots``. ``texts`` maps paths on disk to the texts of open
        documents, also of those that are not saved yet; ``directory`` gets copies of them.
        """
        self._files = files
        self._directory = directory
        self._texts = texts
        #: Copy -> path on disk of the document, and the reverse.
        self._copies: dict[str, str] = {}
        self._copy_of: dict[str, Path] = {}
        #: saltenv -> path in the tree -> path on disk, of documents below its roots.
        self._open: dict[str, dict[str, str]] = {}
        for env, directories in roots.items():
            for root in reversed(directories):
                start = f"{root.rstrip('/')}/"
                below = {file.removeprefix(start): file for file in texts if file.startswith(start)}
                self._open.setdefault(env, {}).update(below)

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        """Return the path of the file, or of a copy that holds the text of the open document."""
        found = self._files.fetch(path, saltenv)
        file = str(found) if found is not None else self._open.get(saltenv, {}).get(path, "")
        text = self._texts.get(file)
        if text is None:
            return found
        if file not in self._copy_of:
            copy = self._directory / str(len(self._copies)) / Path(file).name
            copy.parent.mkdir(parents=True)
            copy.write_text(text, "utf-8")
            self._copies[str(copy)] = file
            self._copy_of[file] = copy
        return self._copy_of[file]

    def shown(self, fetched: Path) -> str:
        """Return the path of the file itself, also for a copy."""
        return self._copies.get(str(fetched), str(fetched))

    def envs(self) -> list[str]:
        """Return the environments of the tree."""
        return self._files.envs()

    def paths(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Return the paths of the tree's files, and of documents that are not saved yet."""
        unsaved = (path for path in self._open.get(saltenv, {}) if path.startswith(prefix))
        return sorted({*self._files.paths(saltenv, prefix), *unsaved})

    def dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Return the paths of the tree's directories."""
        return self._files.dirs(saltenv, prefix)

    def empty_dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Return the paths of the tree's empty directories."""
        return self._files.empty_dirs(saltenv, prefix)

    def symlinks(self, saltenv: str = "base", prefix: str = "") -> dict[str, str]:
        """Return the links of the tree and their targets."""
        return self._files.symlinks(saltenv, prefix)

    def hash(self, path: str, saltenv: str = "base") -> FileHash | None:
        """Return the digest of a file, or of the text of the open document."""
        found = self.fetch(path, saltenv)
        return None if found is None else self._files.digest(found)

    def mode(self, path: str, saltenv: str = "base") -> int | None:
        """Return the permission bits of a file."""
        return self._files.mode(path, saltenv)


class PureFunctions(Mapping[str, Callable[..., object]]):
    """The execution functions of an untrusted tree: those in ``PURE``. Calling another one raises NotInEditor."""

    def __init__(
        self, functions: Mapping[str, Function], data: Callable[[], Mapping[str, object]], exists: Callable[[str], bool]
    ) -> None:
        """Serve ``functions``. ``data`` returns pillar, grains and options for ``config.get``; ``exists`` tells whether a
        function of this name exists on some host.
        """
        self._functions = functions
        self._data = data
        self._exists = exists

    def __getitem__(self, name: str) -> Callable[..., object]:
        if name == "config.get":
            return self._config_get
        if name in PURE:
            return self._functions[name]
        if not self._exists(name):
            raise NotAvailable(name)

        def refused(*args: object, **kwargs: object) -> object:
            raise NotInEditor(f"the function '{name}'")

        return refused

    def _config_get(self, key: str, default: object = "", delimiter: str = DELIMITER, **_: object) -> object:
        """Return the first value of a path in options, grains and pillar. A value of an SDB is not looked up."""
        absent = object()
        for layer in self._data().values():
            found = traverse(layer, key, absent, delimiter)
            if found is not absent:
                if isinstance(found, str) and found.startswith("sdb://"):
                    raise NotInEditor(f"the look-up of {found.partition('?')[0]}")
                return found
        return default

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*PURE, "config.get"}))

    def __len__(self) -> int:
        return len(PURE) + 1

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in PURE or name == "config.get" or self._exists(name))


class Standins(Mapping[str, Callable[..., object]]):
    """Functions whose every result is undefined, to read the words of an SLS whose rendering was refused."""

    def __getitem__(self, name: str) -> Callable[..., object]:
        return lambda *args, **kwargs: jinja2.ChainableUndefined(name=name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, name: object) -> bool:
        return True


class SafeRenderers(Mapping[str, Callable[..., object]]):
    """Refuses every renderer that runs code or decrypts; the others are the built-in ones."""

    def __getitem__(self, name: str) -> Callable[..., object]:
        renderer = name.removesuffix(".render")
        if renderer in SAFE_RENDERERS:
            raise KeyError(name)

        def refused(*args: object, **kwargs: object) -> object:
            raise NotInEditor(f"the renderer '{renderer}'")

        return refused

    def __iter__(self) -> Iterator[str]:
        return (f"{name}.render" for name in RENDERERS if name not in SAFE_RENDERERS)

    def __len__(self) -> int:
        return len(RENDERERS) - len(SAFE_RENDERERS)


@dataclass(slots=True)
class Session:
    """The trees and the minion of one workspace, ready to render. Not for several threads."""

    settings: Settings
    #: Directory for copies of open documents and for users' modules of a trusted tree.
    scratch: Path
    #: Path on disk -> text of the open document.
    texts: dict[str, str] = field(default_factory=dict)
    _memory: RenderMemory = field(default_factory=RenderMemory)
    _grains: dict[str, object] | None = None

    # ----------------------------------------------------------------------------------------------------------- answers

    def minion(self) -> dict[str, object]:
        """Return the minion's grains and pillar."""
        grains = self.grains()
        return {"grains": grains, "pillar": dict(self._pillar(self._overlay(), grains))}

    def check(self, file: str, at: InTree) -> list[Finding]:
        """Return the findings about one file, also those of the files that it includes."""
        if at.tree == "pillar":
            return self._check_pillar(at)
        parts = self.parts()
        if at.path == str(parts.run.opts.get("state_top") or "top.sls"):
            parts.run.tree.report_columns()
            return of_top(parts)[0]
        if at.path.endswith(".sls"):
            found = check(
                parts,
                [reference(at.path)],
                pillar_known=bool(self.settings.pillar) and not _unknown_pillar(parts),
                standins=None if self.settings.trust else Standins(),
            )
            return [one for one in found if one.rule != "pillar"]
        return list(of_template(parts, at.path, at.env))

    def check_tree(self, slses: Sequence[str]) -> list[Finding]:
        """Return the findings about the whole tree, or about these SLS and globs, in which none of the tree's code runs."""
        parts = self.parts()
        found = check(parts, slses, pillar_known=bool(self.settings.pillar), standins=Standins())
        users = self._users_modules(parts.run.tree.files)
        return [judged for one in found if (judged := of_untrusted(one, users)) is not None]

    def _users_modules(self, files: Files) -> Catalogue:
        """Return a catalogue with the tree's own modules, which are read and not loaded."""
        users = Catalogue()
        for env in files.envs():
            for kind, directory in USERS.items():
                for path in files.paths(env, f"{directory}/"):
                    found = files.fetch(path, env) if path.endswith(".py") else None
                    if found is not None:
                        users.set_users(kind, str(found), found.read_text("utf-8", "replace"))
        return users

    def _check_pillar(self, at: InTree) -> list[Finding]:
        tree = self._pillar_tree(self._overlay(), self.grains(), {})
        tree.report_columns()
        try:
            if at.path == "top.sls":
                tree.sections("replace")
            elif at.path.endswith(".sls") and tree.source(reference(at.path), at.env).text.strip():
                tree.data(reference(at.path), at.env)
        except SlsError as error:
            return [
                Finding("render", one.message, one.mark or Mark(""), one.sls, excerpt=one.excerpt, hint=one.hint)
                for one in error.faults
            ]
        return []

    def values(self, at: InTree, line: int) -> list[tuple[str, object]]:
        """Return (path of keys, value) of what a line of an SLS renders to; several for a line in a loop.

        Raise SlsError if the file does not render.
        """
        tree = self._tree_of(at)
        sls = reference(at.path)
        data = tree.data(sls, at.env)
        found = []
        for keys, (number, _) in tree.positions(sls, at.env).items():
            if number == line + 1:
                value = _below(data, keys)
                if value is not _MISSING:
                    found.append((": ".join(keys), value))
        return found

    def expression(self, at: InTree, text: str, start: int, end: int) -> list[str]:
        """Return the values of an expression of a template, as text; several for an expression in a loop.

        ``start`` and ``end`` are the offsets of a Jinja tag, ``text`` the expression in it. The whole template is
        rendered, with marks around the value. Raise SlsError if it does not render.
        """
        tree = self._tree_of(at)
        sls = reference(at.path)
        source = tree.source(sls, at.env).text
        mark = f"\x02{{{{ ({text}) }}}}\x03"
        output = source.startswith("{{", start)
        marked = source[:start] + mark + source[end if output else start :]
        rendered = tree.rendered_text(sls, at.env, marked)
        return [part.partition("\x03")[0] for part in rendered.split("\x02")[1:]]

    # ------------------------------------------------------------------------------------------------------------- parts

    def grains(self) -> dict[str, object]:
        """Return the minion's grains: those of the file as it is now, else those of this host, gathered once."""
        if self.settings.grains:
            # The user may change the file at any time.
            self._grains = mapping_in(self.settings.grains, "grains")
        elif self._grains is None:
            self._grains = dict(self._runtime(LocalFiles({}), None, {}, "/").grains)
        return {**self._grains, "id": self._id()}

    def _id(self) -> str:
        return self.settings.id or str((self._grains or {}).get("id") or "minion")

    def parts(self) -> RunParts:
        """Return the parts of a state run of the minion: not started, with the functions that the tree may call."""
        files, grains = self._overlay(), self.grains()
        pillar = self._pillar(files, grains)
        root = "/" if self.settings.trust else str(self._nowhere())
        runtime = self._runtime(files, grains, pillar, root)
        parts = runtime.run_parts({"test": True})
        if self.settings.trust:
            parts.fetch_modules(files.envs())
            return parts
        functions = self._functions(runtime)
        tree = SlsTree(
            files,
            opts=parts.run.opts,
            grains=grains,
            pillar=pillar,
            functions=functions,
            renderers=SafeRenderers(),
            memory=self._memory,
            untrusted=True,
        )
        run = parts.run._replace(tree=tree)
        return parts._replace(run=run, top=tree.top, fetch_modules=lambda envs: None)

    def _functions(self, runtime: Runtime) -> Mapping[str, Callable[..., object]]:
        if self.settings.trust:
            return runtime.functions

        def exists(name: str) -> bool:
            module, _, function = name.partition(".")
            if not function:
                return False
            served = runtime.loader.built_in_modules("modules", module)
            # A module that is not built in may be one of the tree.
            return not served or any(function in each.functions for each in served)

        def data() -> Mapping[str, object]:
            return {"opts": runtime.opts, "grains": runtime.grains, "pillar": runtime.pillar}

        return PureFunctions(runtime.functions, data, exists)

    def _runtime(
        self, files: Files, grains: Mapping[str, object] | None, pillar: Mapping[str, object], root: str
    ) -> Runtime:
        opts = {
            "id": self._id(),
            "file_roots": {env: list(listed) for env, listed in self.settings.file_roots.items()},
            "pillar_roots": {"base": []},
            "host_root": root,
            "cachedir": str(self.scratch / "cache"),
            "pillar_safe_render_error": False,
            **({"saltenv": self.settings.saltenv} if self.settings.saltenv else {}),
            **(
                {"extension_modules": str(self.scratch / "modules")}
                if self.settings.trust
                else {"jinja_dns_check": False}
            ),
        }
        return local_runtime(opts, grains=grains, pillar=pillar, files=files)

    def _nowhere(self) -> Path:
        """Return an empty directory, which templates of an untrusted tree see as the root of the host."""
        path = self.scratch / "nowhere"
        path.mkdir(exist_ok=True)
        return path

    def _overlay(self) -> Overlay:
        roots = self.settings.file_roots
        files = LocalFiles(roots, follow_links=self.settings.trust)
        return Overlay(files, roots, self._directory("states"), self.texts)

    def _directory(self, name: str) -> Path:
        """Return an empty directory for copies of documents."""
        directory = self.scratch / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        return directory

    def _pillar(self, files: Files, grains: Mapping[str, object]) -> dict[str, object]:
        """Return the minion's pillar, compiled anew; its errors are under ``_errors``."""
        pillar = self.settings.pillar
        if not pillar:
            return {}
        if not Path(pillar).is_dir():
            return mapping_in(pillar, "pillar")
        live: dict[str, object] = {}
        runtime = self._runtime(files, grains, live, "/" if self.settings.trust else str(self._nowhere()))
        made = compile_pillar(
            self._pillar_files(),
            minion_id=self._id(),
            grains=grains,
            opts=runtime.opts,
            functions=self._functions(runtime),
            renderers={} if self.settings.trust else SafeRenderers(),
            live=live,
            memory=self._memory,
            untrusted=not self.settings.trust,
        )
        return {**made.data, **({"_errors": list(made.errors)} if made.errors else {})}

    def _pillar_files(self) -> Overlay:
        roots = {"base": [self.settings.pillar]}
        files = PillarFiles({"pillar_roots": roots, "fileserver_followsymlinks": self.settings.trust})
        return Overlay(files, roots, self._directory("pillar"), self.texts)

    def _pillar_tree(self, files: Files, grains: Mapping[str, object], pillar: Mapping[str, object]) -> SlsTree:
        runtime = self._runtime(files, grains, pillar, "/" if self.settings.trust else str(self._nowhere()))
        return SlsTree(
            self._pillar_files(),
            opts=runtime.opts,
            grains=grains,
            pillar=pillar,
            functions=self._functions(runtime),
            renderers=None if self.settings.trust else SafeRenderers(),
            memory=self._memory,
            secret=True,
            untrusted=not self.settings.trust,
        )

    def _tree_of(self, at: InTree) -> SlsTree:
        if at.tree == "pillar":
            return self._pillar_tree(self._overlay(), self.grains(), {})
        return self.parts().run.tree


_MISSING = object()


def _below(data: object, keys: tuple[str, ...]) -> object:
    """Return the value of a path of keys in rendered data; keys of a list are those of the maps in it."""
    for key in keys:
        if isinstance(data, list):
            data = next(
                (each for each in data if isinstance(each, Mapping) and key in each),
                {key: key} if key in data else _MISSING,
            )
        if not isinstance(data, Mapping):
            return _MISSING
        data = next((value for name, value in data.items() if str(name) == key), _MISSING)
    return data


def _unknown_pillar(parts: RunParts) -> bool:
    errors = parts.run.ctx.pillar.get("_errors")
    return bool(errors)
