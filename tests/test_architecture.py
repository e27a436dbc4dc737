"""The walls of the house: who may import whom. Read from the AST: imports in functions and under TYPE_CHECKING count.

A wall that has to move is moved in ROOMS, with the reason in the row.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest

from saltern.entry import COMMANDS

ROOT = Path(__file__).parents[1]

#: Package -> its folder.
PACKAGES: Mapping[str, Path] = {
    "statecore": ROOT / "libs" / "statecore",
    "saltwire": ROOT / "libs" / "saltwire",
    "masterstore": ROOT / "libs" / "masterstore",
    "saltern": ROOT / "services" / "saltern",
}


@dataclass(frozen=True)
class Source:
    """One file."""

    text: str
    package: bool = False


#: Module name -> its file.
Tree: TypeAlias = Mapping[str, Source]


@dataclass(frozen=True)
class Import:
    """One name that a file imports: ``target`` is a module of the tree where there is one of that name."""

    importer: str
    target: str
    line: int
    in_function: bool

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.target}"


@dataclass(frozen=True)
class Room:
    """What the modules below one name may import of ours. ``extra``: imported name -> why this room may go beyond the rule."""

    may: tuple[str, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    #: Whether its modules may import each other.
    open_inside: bool = True


#: Types, and what is done with paths of a host wherever they come from.
GROUND = (
    "statecore.model.types",
    "statecore.model.errors",
    "statecore.model.ports",
    "statecore.host.rooted_path",
    "statecore.host.copies",
    "statecore.host.content.digests",
)
MIDDLE = (*GROUND, "statecore.model.context", "statecore.targeting.match", "statecore.model.values")
RENDER = (*MIDDLE, "statecore.render")
COMPILE = (*RENDER, "statecore.compile")
#: What a native module, state or grain stands on.
NATIVE = (*GROUND, "statecore.model.context")
LIBRARIES = ("statecore", "saltwire", "masterstore")
#: Wiring: these put the rooms together, so the stages below need not know each other.
WIRING = (
    *COMPILE,
    "statecore.engine",
    "statecore.runtime.calls",
    "statecore.loader",
    "statecore.runtime.grains_gathering",
    "statecore.sources.local_tree",
    "statecore.host.host",
    "statecore.host.content.kept_files",
    "statecore.runtime.local",
    "statecore.runtime.master_data",
    "statecore.model.option_types",
    "statecore.runtime.state_runs.pauses",
    "statecore.pillar",
    "statecore.runtime.state_runs",
    "statecore.runtime.static_grains",
    "statecore.model.time_limit",
)

_TURNS = "it sees to it that one state run goes on at a time"

_VALUES = "pure functions over plain data (traverse, merge), as Salt's functions of the same names need them"
_MANAGED_FILE = "the one way to write a file on the managed host; the file state and the file module both need it"
_HOSTFILES = "files of other programs have one form, in which states look at them and modules write them"

_EDITS = "an edit means the same to the file state, which plans it, and to the file module, which does it"
_PACKAGE_VERSIONS = "conditions on versions mean the same to the pkg state and to the pkg module"
_PYTHON_VERSIONS = (
    "a requirement of Python means the same to the states that compare it and to the module that asks pip"
)
_PACKAGE_REQUESTS = "what functions of pkg are asked for and answer is the same whatever the package manager"
#: What the modules of every package manager need.
_PACKAGES: Mapping[str, str] = {
    "statecore.system.packages.package_versions": _PACKAGE_VERSIONS,
    "statecore.system.packages.package_requests": _PACKAGE_REQUESTS,
    "statecore.host.detached_run": "scripts of packages start daemons",
    "statecore.system.hostfiles": _HOSTFILES,
    "statecore.host.content.managed_file": _MANAGED_FILE,
}
_PLUGIN_COMMANDS = "commands of plugins are bounded, and fail, in one way"
_SCHEDULING = "a job that is added is checked as the minion checks it, and saved in the minion's file"
_BEACON_CONFIG = "a beacon is configured in one form"
_DATABASE_ROLES = "users and groups are roles, and a server is reached in one way"
_DATABASES = "the language of a server is pure text; its client is the module's to run"
_DIFFERENCES = "what changed in a file is shown in one way"
_BACKUPS = "old copies are kept, and found again, by one rule"
_SOURCES = "a source is found, fetched and verified in one way"
_FILE_WRITE = "a file is written in one way, wherever its content comes from"
_CERTIFICATES = (
    "a certificate means the same to the x509 state, which compares it, and to the x509 module, which makes it"
)
_DETACHED_RUN = "it starts programs that leave daemons behind"

#: Quicker forms of what Python itself has: every room may use them, and they use nothing.
LANGUAGE = ("statecore.model.named_tuple", "statecore.model.nearest", "statecore.model.deferred_modules")

#: The longest name that a module starts with is its row. Every module has one.
ROOMS: Mapping[str, Room] = {
    "statecore": Room((*WIRING, "statecore.runtime.calls", "statecore.runtime.runtime")),
    **{name: Room(GROUND) for name in GROUND},
    **{name: Room() for name in LANGUAGE},
    "statecore.model.values": Room(GROUND),
    "statecore.model.context": Room(GROUND),
    "statecore.targeting.nested": Room((*GROUND, "statecore.model.values")),
    "statecore.targeting.compound": Room(GROUND),
    "statecore.targeting.match": Room(
        (*GROUND, "statecore.model.values", "statecore.targeting.nested", "statecore.targeting.compound")
    ),
    "statecore.sources.local_tree": Room(GROUND),
    "statecore.sources.gitrepos": Room(GROUND, {"statecore.sources.local_tree": "what was exported is a file on disk"}),
    "statecore.sources.fileserver": Room(
        (*GROUND, "statecore.sources.local_tree"),
        {
            "statecore.sources.gitrepos": "branches of repositories are environments of the tree",
            "statecore.model.lazy": "most minions without a master fetch nothing",
        },
    ),
    "statecore.sources.fileserver.users": Room(
        (*GROUND, "statecore.sources.local_tree"),
        {
            "statecore.model.lazy": "most masters have no backend of their own, and load nothing for it",
            "statecore.loader": "users' modules of every kind are found and called by the loader",
            "statecore.runtime.runtime": "a module finds what it finds anywhere",
        },
    ),
    "statecore.host.namespaces": Room(GROUND),
    "statecore.host.host": Room(),
    "statecore.host.host": Room(
        GROUND,
        {
            "statecore.host.namespaces": "commands of the host run in its namespaces",
            "statecore.host.host": "a command of the host is waited for, and ended when its time is over",
        },
    ),
    "statecore.host.content.managed_file": Room(GROUND),
    "statecore.system.packages.package_versions": Room(),
    "statecore.system.packages.python_versions": Room(),
    "statecore.system.packages.package_requests": Room(
        NATIVE, {"statecore.sources.downloads": "a package's file may lie behind a URL"}
    ),
    "statecore.system.hostfiles": Room(
        GROUND,
        {
            "statecore.host.content.managed_file": _MANAGED_FILE,
            "statecore.host.host": "an account is told in the host's own form",
        },
    ),
    "statecore.host.detached_run": Room(GROUND),
    "statecore.host.content.kept_files": Room(GROUND),
    "statecore.runtime.state_runs.pauses": Room((*GROUND, "statecore.host.content.kept_files")),
    "statecore.runtime.state_runs.running_jobs": Room(),
    "statecore.model.option_types": Room(),
    "statecore.runtime.state_runs.state_queue": Room(NATIVE),
    "statecore.runtime.static_grains": Room((*GROUND, "statecore.model.values")),
    "statecore.runtime.local": Room((*GROUND, "statecore.model.context")),
    "statecore.model.lazy": Room(),
    "statecore.render": Room(
        MIDDLE,
        {
            "statecore.model.lazy": "plain SLS need no template engine",
            "statecore.host.content.kept_files": "what a text was read to is kept as all that a minion keeps",
            "statecore.model.time_limit": "what is written in Python computes no longer than what is written in Jinja",
        },
    ),
    "statecore.pillar": Room(
        RENDER,
        {
            "statecore.sources.local_tree": "the pillar tree is files, with environments in an order of their own",
            "statecore.sources.gitrepos": "a repository is a pillar tree",
        },
    ),
    "statecore.runtime.master_data": Room(WIRING),
    "statecore.model.time_limit": Room(),
    "statecore.host.plugin_commands": Room(GROUND),
    "statecore.builtin.ext_pillar": Room(
        NATIVE,
        {
            "statecore.model.values": _VALUES,
            "statecore.targeting.match": "a directory of file_tree is for those that a nodegroup means",
            "statecore.render": "what plugins read is YAML and Jinja",
            "statecore.host.plugin_commands": _PLUGIN_COMMANDS,
        },
        open_inside=False,
    ),
    "statecore.builtin.tops": Room(
        NATIVE,
        {"statecore.render": "what a classifier prints is YAML", "statecore.host.plugin_commands": _PLUGIN_COMMANDS},
        open_inside=False,
    ),
    "statecore.compile": Room(RENDER),
    "statecore.loader": Room((*GROUND, "statecore.model.context")),
    "statecore.loader.compat": Room(
        (*GROUND, "statecore.model.context", "statecore.loader"),
        {
            "statecore.targeting.nested": "salt.utils.data.subdict_match, as users' modules import it, is this function",
            "statecore.model.values": "salt.utils.data and salt.utils.dictupdate, as users' modules import them, are these functions",
            "statecore.runtime.returner_settings": "salt.returners, as users' returners import it, finds settings the same way",
        },
    ),
    "statecore.sources.extension_modules": Room(GROUND),
    "statecore.runtime.calls": Room((*GROUND, "statecore.model.context", "statecore.loader")),
    "statecore.builtin.executors": Room(NATIVE, open_inside=False),
    "statecore.engine": Room(
        COMPILE,
        {"statecore.loader": "the engine asks it for the function of a state; the loader knows nothing of the engine"},
    ),
    "statecore.runtime.grains_gathering": Room((*MIDDLE, "statecore.loader", "statecore.runtime.static_grains")),
    "statecore.runtime.state_runs": Room(WIRING),
    "statecore.runtime.later": Room(
        (
            *WIRING,
            "statecore.model.lazy",
            "statecore.sources.fileserver.masterless",
            "statecore.runtime.return_delivery",
        )
    ),
    "statecore.runtime.ports": Room((*WIRING, "statecore.runtime.later")),
    "statecore.runtime.calls": Room(
        (*NATIVE, "statecore.loader", "statecore.runtime.calls", "statecore.runtime.ports")
    ),
    "statecore.runtime.runtime": Room(
        (
            *WIRING,
            "statecore.runtime.calls",
            "statecore.model.lazy",
            "statecore.runtime.later",
            "statecore.runtime.ports",
            "statecore.runtime.master_options",
        )
    ),
    "statecore.runtime.master_options": Room(),
    "statecore.analysis": Room(
        COMPILE,
        {
            "statecore.engine.arguments": "what is wrong with an argument is what the engine would say of it",
            "statecore.engine.requisite": "what becomes of a state is decided by the engine's own table",
            "statecore.loader.arguments": "what a function takes, in the form that the engine binds to",
        },
    ),
    "statecore.analysis.inspection": Room(
        (*COMPILE, "statecore.analysis", "statecore.engine", "statecore.loader", "statecore.runtime.state_runs")
    ),
    "statecore.analysis.commands": Room(
        (*COMPILE, "statecore.analysis", "statecore.analysis.inspection", "statecore.runtime.runtime"),
        {
            "statecore.runtime.state_runs.state_queue": _TURNS,
            "statecore.runtime.state_runs.running_jobs": "an apply is a job of its host, as a call of salt-call is",
            "statecore.model.option_types": "nobody has looked yet at the options in a file of --config",
        },
    ),
    "statecore.__main__": Room(("statecore.analysis.commands",)),
    "statecore.host.content.edits": Room(GROUND),
    "statecore.system.scheduling": Room(),
    "statecore.runtime.return_delivery": Room((*NATIVE, "statecore.loader")),
    "statecore.runtime.returner_settings": Room(),
    "statecore.builtin.returners": Room(
        NATIVE,
        {
            "statecore.runtime.returner_settings": "settings of returners are found in one way",
            "statecore.host.content.kept_files": "the local cache is files",
        },
        open_inside=False,
    ),
    "statecore.host.inotify": Room({}, {"statecore.host.rooted_path": "what a path leads to, in a mounted host too"}),
    "statecore.system.scheduling.beacon_config": Room(),
    "statecore.runtime.beacon_runs": Room((*NATIVE, "statecore.loader", "statecore.system.scheduling.beacon_config")),
    "statecore.builtin.beacons": Room(
        NATIVE,
        {
            "statecore.system.scheduling.beacon_config": _BEACON_CONFIG,
            "statecore.host.inotify": "what the kernel tells of files",
            "statecore.system.hostfiles": _HOSTFILES,
        },
        open_inside=False,
    ),
    "statecore.sources.downloads": Room(GROUND),
    "statecore.sources.sent_files": Room(NATIVE),
    "statecore.host.content.diffs": Room(GROUND),
    "statecore.host.content.backups": Room(GROUND),
    "statecore.host.file_attributes": Room(GROUND),
    "statecore.host.selinux_contexts": Room(GROUND),
    "statecore.host.content.marks": Room(
        GROUND,
        {
            "statecore.host.file_attributes": "what a file bears is set in one order",
            "statecore.host.selinux_contexts": "what a file bears is set in one order",
        },
    ),
    "statecore.sources.openpgp_signatures": Room(GROUND),
    "statecore.sources.file_source": Room(
        NATIVE,
        {
            "statecore.sources.downloads": "a source may lie behind a URL",
            "statecore.sources.openpgp_signatures": "a source may have to be signed",
        },
    ),
    "statecore.host.content.write_plan": Room(
        NATIVE,
        {
            "statecore.host.content.managed_file": _MANAGED_FILE,
            "statecore.host.content.diffs": _DIFFERENCES,
            "statecore.host.content.marks": "a file is put in place with what it bears",
            "statecore.host.content.backups": _BACKUPS,
        },
    ),
    "statecore.system.databases": Room(GROUND),
    "statecore.system.databases.roles": Room(NATIVE, {"statecore.system.databases": _DATABASES}),
    "statecore.system.certificates": Room(
        GROUND, {"statecore.host.content.managed_file": "what a reference names is read as every file of the host is"}
    ),
    "statecore.sources.http": Room(GROUND, {"statecore.sources.downloads": "HTTPS and logins are the same for both"}),
    "statecore.builtin.modules.cp": Room(
        NATIVE,
        {
            "statecore.host.content.managed_file": _MANAGED_FILE,
            "statecore.sources.sent_files": "files that go to the master",
            "statecore.sources.file_source": _SOURCES,
            "statecore.sources.downloads": "a source may lie behind a URL",
        },
    ),
    "statecore.builtin.modules.file": Room(
        NATIVE,
        {
            "statecore.host.content.managed_file": _MANAGED_FILE,
            "statecore.host.content.edits": _EDITS,
            "statecore.host.content.diffs": _DIFFERENCES,
            "statecore.host.content.backups": _BACKUPS,
            "statecore.host.file_attributes": "lsattr and chattr are asked in one way",
            "statecore.host.content.marks": "what a file bears is set in one order",
            "statecore.host.selinux_contexts": "SELinux is asked in one way",
            "statecore.sources.file_source": _SOURCES,
        },
    ),
    "statecore.builtin.modules.archive": Room(
        NATIVE,
        {
            "statecore.system.hostfiles": _HOSTFILES,
            "statecore.sources.file_source": _SOURCES,
            "statecore.sources.downloads": "a copy of what came from a server need not be kept",
        },
    ),
    "statecore.builtin.modules.gpg": Room(
        NATIVE, {"statecore.sources.openpgp_signatures": "it is what the states verify with"}
    ),
    "statecore.builtin.modules": Room(
        NATIVE,
        {
            "statecore.model.values": _VALUES,
            "statecore.host.content.managed_file": _MANAGED_FILE,
            "statecore.system.hostfiles": _HOSTFILES,
        },
        open_inside=False,
    ),
    "statecore.builtin.modules.grains": Room(
        NATIVE,
        {
            "statecore.model.values": _VALUES,
            "statecore.runtime.static_grains": "the file of static grains has one reader and one writer",
        },
    ),
    "statecore.builtin.modules.saltutil": Room(
        NATIVE,
        {
            "statecore.sources.extension_modules": "minions and masters fetch users' modules in one way",
            "statecore.host.content.kept_files": "what jobs returned is kept where the minion is to keep it",
        },
    ),
    "statecore.builtin.modules.match": Room(
        NATIVE,
        {
            "statecore.model.values": _VALUES,
            "statecore.targeting.match": "its functions are that module's matchers, asked by name",
        },
    ),
    "statecore.builtin.modules.state_tree": Room(
        NATIVE,
        {
            "statecore.analysis.inspection": "it looks at the tree and its run, which other modules have no business with; it is loaded"
            " when somebody asks",
            "statecore.analysis": "it says what it saw in the words of the command",
        },
    ),
    # A package: the verbs of one module in several files.
    "statecore.builtin.modules.http": Room(
        NATIVE,
        {
            "statecore.host.content.managed_file": _MANAGED_FILE,
            "statecore.sources.http": "what a request means is apart from how it is sent",
            "statecore.sources.downloads": "a bundle of authorities is a file behind a URL",
        },
    ),
    "statecore.builtin.modules.mine": Room(
        NATIVE, {"statecore.host.content.kept_files": "without a master, what is offered is kept between two calls"}
    ),
    "statecore.builtin.modules.schedule": Room(NATIVE, {"statecore.system.scheduling": _SCHEDULING}),
    "statecore.builtin.modules.data": Room(
        NATIVE, {"statecore.host.content.kept_files": "what a minion keeps for itself is a kept file"}
    ),
    "statecore.builtin.modules.nftables": Room(NATIVE, {"statecore.system.hostfiles": _HOSTFILES}),
    "statecore.builtin.modules.network": Room(NATIVE, {"statecore.system.hostfiles": _HOSTFILES}),
    "statecore.builtin.modules.ps": Room(NATIVE, {"statecore.system.hostfiles": _HOSTFILES}),
    "statecore.builtin.modules.pip": Room(NATIVE, {"statecore.system.packages.python_versions": _PYTHON_VERSIONS}),
    "statecore.builtin.modules.service_openrc": Room(NATIVE, {"statecore.host.detached_run": _DETACHED_RUN}),
    "statecore.builtin.modules.beacons": Room(NATIVE, {"statecore.system.scheduling.beacon_config": _BEACON_CONFIG}),
    "statecore.builtin.states.beacon": Room(NATIVE, {"statecore.system.scheduling.beacon_config": _BEACON_CONFIG}),
    "statecore.builtin.modules.pkg_apt": Room(
        NATIVE, {**_PACKAGES, "statecore.sources.downloads": "what a server has is not fetched only to compare it"}
    ),
    "statecore.builtin.modules.pkg_rpm": Room(NATIVE, _PACKAGES),
    "statecore.builtin.modules.postgres": Room(
        NATIVE, {"statecore.host.content.managed_file": _MANAGED_FILE, "statecore.system.databases": _DATABASES}
    ),
    "statecore.builtin.states.mysql_query": Room(NATIVE, {"statecore.host.content.managed_file": _MANAGED_FILE}),
    **{
        f"statecore.builtin.states.postgres_{each}": Room(NATIVE, {"statecore.system.databases.roles": _DATABASE_ROLES})
        for each in [
            "user",
            "group",
            "database",
            "extension",
            "schema",
            "privileges",
            "tablespace",
            "language",
            "initdb",
        ]
    },
    "statecore.builtin.modules.mysql": Room(
        NATIVE, {"statecore.host.content.managed_file": _MANAGED_FILE, "statecore.system.databases": _DATABASES}
    ),
    "statecore.builtin.modules.x509": Room(
        NATIVE, {"statecore.host.content.managed_file": _MANAGED_FILE, "statecore.system.certificates": _CERTIFICATES}
    ),
    "statecore.builtin.modules.service_sysv": Room(
        NATIVE, {"statecore.host.detached_run": _DETACHED_RUN, "statecore.system.hostfiles": _HOSTFILES}
    ),
    "statecore.builtin.modules.pkg_apk": Room(
        NATIVE, {**_PACKAGES, "statecore.sources.downloads": "what a server has is not fetched only to compare it"}
    ),
    # A package: the verbs of one module in several files.
    "statecore.builtin.modules.state": Room(
        NATIVE,
        {
            "statecore.host.content.kept_files": "a requested run is kept until somebody runs it",
            "statecore.runtime.state_runs.pauses": "it writes the orders that a state run in progress reads",
            "statecore.runtime.state_runs.state_queue": _TURNS,
        },
    ),
    "statecore.builtin.states": Room(NATIVE, {"statecore.system.hostfiles": _HOSTFILES}, open_inside=False),
    # A package: one state in several files.
    "statecore.builtin.states.file": Room(
        NATIVE,
        {
            "statecore.host.content.managed_file": _MANAGED_FILE,
            "statecore.host.content.write_plan": _FILE_WRITE,
            "statecore.host.content.edits": _EDITS,
            "statecore.sources.downloads": "a source may lie behind a URL",
            "statecore.sources.file_source": _SOURCES,
            "statecore.host.content.diffs": _DIFFERENCES,
            "statecore.host.content.marks": "a file is put in place with what it bears",
        },
    ),
    "statecore.builtin.states.archive": Room(
        NATIVE,
        {
            "statecore.system.hostfiles": _HOSTFILES,
            "statecore.host.content.managed_file": _MANAGED_FILE,
            "statecore.sources.file_source": _SOURCES,
            "statecore.sources.downloads": "a copy of what came from a server need not be kept",
        },
    ),
    "statecore.builtin.states.cron": Room(
        NATIVE,
        {
            "statecore.system.hostfiles": _HOSTFILES,
            "statecore.sources.file_source": _SOURCES,
            "statecore.host.content.diffs": _DIFFERENCES,
        },
    ),
    "statecore.builtin.states.saltmod": Room(NATIVE),
    "statecore.builtin.states.mount": Room(NATIVE, {"statecore.system.hostfiles": _HOSTFILES}),
    "statecore.builtin.states.x509": Room(
        NATIVE,
        {
            "statecore.host.content.managed_file": _MANAGED_FILE,
            "statecore.host.content.write_plan": _FILE_WRITE,
            "statecore.system.certificates": _CERTIFICATES,
        },
    ),
    "statecore.builtin.states.git": Room(NATIVE, {"statecore.host.content.managed_file": _MANAGED_FILE}),
    "statecore.builtin.states.pkg": Room(NATIVE, {"statecore.system.packages.package_versions": _PACKAGE_VERSIONS}),
    "statecore.builtin.states.pip": Room(NATIVE, {"statecore.system.packages.python_versions": _PYTHON_VERSIONS}),
    "statecore.builtin.states.service": Room(NATIVE),
    "statecore.builtin.states.user": Room(NATIVE, {"statecore.system.hostfiles": _HOSTFILES}),
    "statecore.builtin.states.virtualenv": Room(
        NATIVE, {"statecore.system.packages.python_versions": _PYTHON_VERSIONS}
    ),
    "statecore.builtin.grains": Room(
        GROUND,
        {"statecore.system.hostfiles": "facts are read from small files, which may be pipes, loops or not there"},
        open_inside=False,
    ),
    "saltwire": Room(),
    "masterstore": Room(),
    "services": Room(open_inside=False),
    "saltern.start": Room(("saltern.kit",)),
    "saltern.kit": Room(("saltwire", "statecore")),
    **{
        f"services.{role}": Room(("saltern.kit", *LIBRARIES))
        for role in (
            "api",
            "cli",
            "eventpublisher",
            "lab",
            "maintenance",
            "moving",
            "storecheck",
            "mworker",
            "publisher",
            "reactor",
            "reqserver",
        )
    },
    "saltern.minion": Room(("saltern.kit", "statecore", "saltwire")),
}

#: Outside package -> the only rooms that may import it, and why.
DOORS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "redis": (
        ("masterstore", "statecore.builtin.returners.redis_return"),
        "what the master remembers has one way in; a returner goes to the server that its user names",
    ),
    "zmq": (("saltwire.zmq", "services"), "statecore has no sockets; saltwire's only ones are in zmq/"),
    "salt": ((), "nothing of ours needs a Salt"),
    "importlib": (
        (
            *(
                "statecore.loader",
                "statecore.__init__",
                *("statecore.model.lazy", "statecore.model.deferred_modules"),
                "saltern.entry",
                "saltern.kit.command.launcher",
                "saltern.minion.call.call",
            ),
            *("saltern.minion.duties.duties", "saltern.minion.engine.preload", "saltern.minion.engine.zygote"),
            *("saltern.kit.command.output.__init__", "masterstore.redis_parts", "saltwire.key_formats"),
        ),
        "modules are found by the loader, commands and outputters by their tables, the names of the package itself when they "
        "are asked for; test.ping must not load the stages of a state run, nor salt-call --local what speaks to a master, nor "
        "a role what of redis-py and cryptography it has no use for",
    ),
    "importlib.metadata": (tuple(PACKAGES), "it imports nothing"),
    "pkgutil": (("statecore.loader",), "modules are found by the loader"),
    "runpy": ((), "modules are found by the loader"),
}

#: Roles between whose socket and handler there is no event loop of Python's; what they import of ours counts too.
HOT = ("saltern.reqserver", "saltern.mworker", "saltern.publisher", "saltern.eventpublisher", "saltern.minion")

VAGUE = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "base", "manager"})

#: Vague names that are somebody else's.
NAMED_BY_SALT = ("statecore.loader.compat.utils",)


def is_below(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(prefix + ".")


@cache
def real_tree() -> Tree:
    tree = {}
    for package, folder in PACKAGES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            tree[".".join((package, *(parts[:-1] if is_package else parts)))] = Source(
                path.read_text("utf-8"), is_package
            )
    return tree


@cache
def _nodes(source: Source) -> tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]:
    """Import statements of a file, each with whether it stands in a function."""

    def walk(node: ast.AST, in_function: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                yield child, in_function
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, in_function or function)

    return tuple(walk(ast.parse(source.text), False))


def imports_of(module: str, tree: Tree) -> list[Import]:
    """What the file imports; ``from a import b`` is the module a.b where the tree has one, else a. Relative names are resolved."""
    found = []
    for node, in_function in _nodes(tree[module]):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            parts = module.split(".")
            up = node.level - tree[module].package if node.level else 0
            base = (
                ".".join([*parts[: len(parts) - up], *filter(None, [node.module])]) if node.level else str(node.module)
            )
            targets = [name if (name := f"{base}.{alias.name}") in tree else base for alias in node.names]
        found += [Import(module, target, node.lineno, in_function) for target in targets]
    return found


def ours(tree: Tree, module: str) -> list[Import]:
    return [one for one in imports_of(module, tree) if one.target.split(".")[0] in PACKAGES]


def room_of(module: str) -> str | None:
    # A file of ``services`` itself is no role; a role that is not in the table must not fall under "services".
    names = [name for name in ROOMS if is_below(module, name)]
    best = max(names, key=len, default=None)
    return None if best in ("services", "statecore") and module not in (best, f"{best}.entry") else best


def closure(tree: Tree, roots: tuple[str, ...]) -> dict[str, str | None]:
    """All modules of ours that are loaded when the modules below ``roots`` are: module -> who imports it."""
    reached: dict[str, str | None] = {}
    todo: list[tuple[str, str | None]] = [(name, None) for name in tree if any(is_below(name, root) for root in roots)]
    while todo:
        module, by = todo.pop()
        if module in reached or module not in tree:
            continue
        reached[module] = by
        # Importing a.b.c runs a and a.b too.
        parents = [".".join(module.split(".")[:n]) for n in range(1, module.count(".") + 1)]
        todo += [(name, module) for name in (*parents, *(one.target for one in ours(tree, module)))]
    return reached


def chain(reached: Mapping[str, str | None], module: str) -> str:
    names = [module]
    while (by := reached[names[-1]]) is not None:
        names.append(by)
    return " <- ".join(names)


def every_module_has_a_room(tree: Tree) -> Iterator[str]:
    for module in tree:
        if room_of(module) is None:
            yield f"{module} has no row in ROOMS: say what it may import"


def rooms_import_what_their_row_allows(tree: Tree) -> Iterator[str]:
    for module in tree:
        name = room_of(module)
        room = ROOMS.get(name or "")
        for one in ours(tree, module) if room and name else ():
            allowed = (*LANGUAGE, *room.may, *room.extra, *((name,) if room.open_inside else ()))
            # ``from statecore import errors`` reads the package too; the package by itself is no way around its rows.
            if not any(is_below(one.target, prefix) for prefix in allowed) and one.target != module:
                yield f"{one}; {name} may import {', '.join(sorted({*room.may, *room.extra})) or 'nothing of ours'}"


_FOUND_BY_THE_LOADER = (
    "statecore.builtin.modules",
    "statecore.builtin.states",
    "statecore.builtin.grains",
    "statecore.builtin.ext_pillar",
    "statecore.builtin.tops",
    "statecore.builtin.beacons",
    "statecore.builtin.returners",
)


def modules_are_found_by_the_loader_only(tree: Tree) -> Iterator[str]:
    for module in tree:
        for one in ours(tree, module):
            for kind in _FOUND_BY_THE_LOADER:
                # The files of one state that is a package know each other.
                same = one.target.split(".")[:3] == module.split(".")[:3] and one.target.count(".") >= 2
                if is_below(one.target, kind) and not same:
                    yield f"{one}; only the loader finds modules, states and grains"


def the_minion_has_no_road_to_the_store(tree: Tree) -> Iterator[str]:
    reached = closure(tree, ("saltern.minion",))
    for module in reached:
        if is_below(module, "masterstore"):
            yield f"{chain(reached, module)}: a managed host has no road to Redis"


def imports_of_ours_stand_at_the_top(tree: Tree) -> Iterator[str]:
    for module in tree:
        for one in ours(tree, module):
            if one.in_function:
                yield f"{one} inside a function"


def outside_packages_come_in_by_their_doors(tree: Tree) -> Iterator[str]:
    for module in tree:
        name = f"{module}.__init__" if tree[module].package else module
        for one in imports_of(module, tree):
            door = DOORS.get(max((row for row in DOORS if is_below(one.target, row)), key=len, default=""))
            if door and not any(is_below(name, room) for room in door[0]):
                yield f"{one}: {door[1]}"


def hot_roles_have_no_event_loop(tree: Tree) -> Iterator[str]:
    for role in HOT:
        reached = closure(tree, (role,))
        for module in reached:
            for one in imports_of(module, tree):
                if one.target.split(".")[0] == "asyncio" or is_below(one.target, "zmq.asyncio"):
                    yield f"{one} ({chain(reached, module)})"


def names_say_what_is_inside(tree: Tree) -> Iterator[str]:
    for module in tree:
        if module.split(".")[-1].strip("_") in VAGUE and not any(is_below(module, name) for name in NAMED_BY_SALT):
            yield f"{module}: the name says nothing"


def named_tuples_are_made_quickly(tree: Tree) -> Iterator[str]:
    for module in tree:
        for node, _ in _nodes(tree[module]) if module.split(".")[0] in ("statecore", "services") else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            if "NamedTuple" in names and node.module == "typing" and module != "statecore.model.named_tuple":
                yield f"{module}:{node.lineno} takes typing's NamedTuple: statecore.model.named_tuple's costs a third at each start"


Rule: TypeAlias = Callable[[Tree], Iterator[str]]

RULES: tuple[Rule, ...] = (
    every_module_has_a_room,
    rooms_import_what_their_row_allows,
    modules_are_found_by_the_loader_only,
    the_minion_has_no_road_to_the_store,
    imports_of_ours_stand_at_the_top,
    outside_packages_come_in_by_their_doors,
    hot_roles_have_no_event_loop,
    names_say_what_is_inside,
    named_tuples_are_made_quickly,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_house(rule: Rule) -> None:
    assert list(rule(real_tree())) == []


def test_rows_name_rooms_that_exist() -> None:
    exceptions = {(name, target) for name, room in ROOMS.items() for target in room.extra}
    used = {
        (name, target)
        for module in real_tree()
        if (name := room_of(module))
        for one in ours(real_tree(), module)
        for target in ROOMS[name].extra
        if is_below(one.target, target)
    }
    assert exceptions == used, "an exception that nothing needs any more is a hole in the wall"


@dataclass(frozen=True)
class Break:
    """A file that breaks one rule, and what the rule says about it."""

    rule: Rule
    module: str
    text: str
    says: str


_IN_FUNCTION = "def work():\n    {}\n"
_TYPE_CHECKING = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {}\n"

BREAKS = (
    Break(every_module_has_a_room, "services.scheduler.main", "", "services.scheduler.main has no row"),
    Break(every_module_has_a_room, "statecore.novelty", "", "statecore.novelty has no row"),
    Break(
        named_tuples_are_made_quickly,
        "statecore.builtin.states.x",
        "from typing import Any, NamedTuple",
        "states.x:1 takes",
    ),
    Break(rooms_import_what_their_row_allows, "saltwire.x", "import statecore.model.types", "nothing of ours"),
    Break(rooms_import_what_their_row_allows, "masterstore.x", "from saltwire import jid", "imports saltwire.jid"),
    Break(
        rooms_import_what_their_row_allows,
        "statecore.model.errors",
        "import statecore.model.context",
        "statecore.model.context",
    ),
    Break(
        rooms_import_what_their_row_allows, "statecore.render.x", "from statecore import compile", "statecore.compile"
    ),
    Break(
        rooms_import_what_their_row_allows,
        "statecore.compile.x",
        "from statecore.engine import run",
        "statecore.engine",
    ),
    Break(
        rooms_import_what_their_row_allows,
        "statecore.builtin.states.x",
        "import statecore.builtin.modules.cmd",
        "statecore.builtin.modules.cmd",
    ),
    Break(
        rooms_import_what_their_row_allows,
        "statecore.builtin.states.x",
        "from . import cmd",
        "imports statecore.builtin.states.cmd",
    ),
    Break(rooms_import_what_their_row_allows, "statecore.builtin.modules.x", "import statecore", "imports statecore;"),
    Break(rooms_import_what_their_row_allows, "saltern.publisher.x", "from services import mworker", "saltern.mworker"),
    Break(
        rooms_import_what_their_row_allows,
        "saltern.cli.x",
        _IN_FUNCTION.format("from saltern.minion.call.call import run"),
        "saltern.cli.x:2 imports saltern.minion.call.call",
    ),
    Break(rooms_import_what_their_row_allows, "saltern.kit.x", "import masterstore", "imports masterstore"),
    Break(rooms_import_what_their_row_allows, "saltern.kit.x", "from ..cli import salt", "imports saltern.cli.salt"),
    Break(rooms_import_what_their_row_allows, "saltern.entry", "import saltern.cli.salt", "saltern.cli.salt"),
    Break(
        rooms_import_what_their_row_allows,
        "saltern.minion.x",
        _TYPE_CHECKING.format("from masterstore.store import Store"),
        "saltern.minion.x:3 imports masterstore.store",
    ),
    Break(
        rooms_import_what_their_row_allows,
        "statecore.analysis.x",
        "from statecore.loader import Loader",
        "statecore.loader",
    ),
    Break(
        rooms_import_what_their_row_allows,
        "statecore.runtime.runtime",
        "import statecore.analysis.inspection.plan",
        "imports statecore.analysis.inspection.plan",
    ),
    Break(
        rooms_import_what_their_row_allows,
        "statecore.analysis.inspection.x",
        "from statecore.analysis.commands import main",
        "statecore.analysis.commands",
    ),
    Break(
        modules_are_found_by_the_loader_only,
        "statecore.runtime.runtime",
        "import statecore.builtin.modules.cmd",
        "only the loader",
    ),
    Break(
        modules_are_found_by_the_loader_only,
        "statecore.builtin.states.x",
        "from statecore.builtin.states import cmd",
        "only the loader",
    ),
    Break(
        the_minion_has_no_road_to_the_store,
        "saltern.kit.config.reading",
        "import masterstore.store",
        "masterstore.store <- saltern.kit.config.reading",
    ),
    Break(
        the_minion_has_no_road_to_the_store,
        "statecore.model.values",
        _IN_FUNCTION.format("from masterstore import keys"),
        "masterstore.keys <- statecore.model.values",
    ),
    Break(
        imports_of_ours_stand_at_the_top,
        "statecore.x",
        _IN_FUNCTION.format("import statecore.model.types"),
        "inside a function",
    ),
    Break(
        imports_of_ours_stand_at_the_top,
        "saltern.kit.x",
        "class A:\n    async def f(self):\n        if 1:\n            from saltern.kit import bus\n",
        "saltern.kit.x:4 imports saltern.kit.links.event_bus inside a function",
    ),
    Break(outside_packages_come_in_by_their_doors, "saltern.mworker.x", "import redis.exceptions", "one way in"),
    Break(outside_packages_come_in_by_their_doors, "statecore.x", "import zmq", "no sockets"),
    Break(outside_packages_come_in_by_their_doors, "saltwire.envelope", "from zmq import Context", "no sockets"),
    Break(
        outside_packages_come_in_by_their_doors,
        "statecore.runtime.runtime",
        "import importlib",
        "runtime:1 imports importlib",
    ),
    Break(hot_roles_have_no_event_loop, "saltern.mworker.x", "import asyncio.events", "imports asyncio.events"),
    Break(
        hot_roles_have_no_event_loop,
        "saltern.kit.links.sockets",
        _IN_FUNCTION.format("import zmq.asyncio"),
        "zmq.asyncio",
    ),
    Break(names_say_what_is_inside, "saltern.cli.utils", "", "saltern.cli.utils"),
    Break(names_say_what_is_inside, "statecore.loader.base", "", "statecore.loader.base"),
)


@pytest.mark.parametrize("one", BREAKS, ids=lambda one: f"{one.rule.__name__}-{one.module}")
def test_the_checker_sees_a_broken_wall(one: Break) -> None:
    complaints = [text for text in one.rule({**real_tree(), one.module: Source(one.text)}) if one.says in text]
    assert complaints, f"{one.module} with {one.text!r} went unnoticed"
    assert all(one.module in text for text in complaints)


def test_what_is_allowed_is_not_complained_about() -> None:
    tree = {
        **real_tree(),
        "statecore.builtin.states.x": Source(
            "from statecore.model.types import Plan\nfrom statecore.model.context import Context\n"
        ),
        "saltern.mworker.x": Source(
            "from masterstore.store import Store\nfrom saltern.mworker import door\nimport json\n"
        ),
        "saltern.minion.x": Source("def f():\n    import sqlite3\n"),
    }
    assert [text for rule in RULES for text in rule(tree)] == []


def test_every_command_of_the_entry_is_a_module_by_name() -> None:
    for name, command in COMMANDS.items():
        package = command.module.rpartition(".")[0]
        assert package in real_tree(), f"saltern {name}: no package {package}"
