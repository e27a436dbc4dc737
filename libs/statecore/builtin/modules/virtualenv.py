"""Virtual environments of Python on the managed host, through its virtualenv or its Python: Salt's ``virtualenv``
execution module.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import Any

from statecore.host.rooted_path import remove_tree
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

#: Programs in order of preference. Without any, Python's module venv is used.
_PROGRAMS = (f"virtualenv-{sys.version_info[0]}.{sys.version_info[1]}", "virtualenv3", "virtualenv")

_PYTHON = re.compile(r"(python|pypy)[0-9.]*", re.IGNORECASE)

#: Argument -> option that only virtualenv has; argument -> option that only venv has.
_VIRTUALENV_ONLY = {"extra_search_dir": "--extra-search-dir", "never_download": "--never-download"}
_VENV_ONLY = {"upgrade": "--upgrade", "symlinks": "--symlinks"}

#: Programs for the environment's own Python; their arguments are in sys.argv.
_SITE_PACKAGES = "import sysconfig; print(sysconfig.get_path('purelib'))"
_DISTRIBUTION = """import sys
try:
    from importlib.metadata import PackageNotFoundError, distribution
except ImportError:
    import pkg_resources
    print(pkg_resources.get_distribution(sys.argv[1]).location)
else:
    try:
        print(distribution(sys.argv[1]).locate_file(''))
    except PackageNotFoundError:
        sys.exit("No package metadata was found for " + sys.argv[1])
"""
_RESOURCE = """import importlib.resources, sys
place = importlib.resources.files(sys.argv[1]).joinpath(sys.argv[2])
"""
_RESOURCE_PATH = _RESOURCE + "print(place)\n"
_RESOURCE_CONTENT = _RESOURCE + "sys.stdout.write(place.read_text('utf-8'))\n"


def create(
    ctx: Context,
    path: str,
    venv_bin: str | None = None,
    system_site_packages: bool = False,
    distribute: bool = False,
    clear: bool = False,
    python: str | None = None,
    extra_search_dir: object = None,
    never_download: bool | None = None,
    prompt: str | None = None,
    pip: bool = False,
    symlinks: bool | None = None,
    upgrade: bool | None = None,
    user: str | None = None,
    use_vt: bool = False,
    saltenv: str | None = None,
    env: object = None,
    umask: object = None,
) -> dict[str, object]:
    """Create a virtual environment of Python. Return a map with retcode, stdout, stderr and pid of the program.

    Raise CommandError for options that the program does not have, and for a missing Python.

    venv_bin
        a virtualenv program; ``venv`` or a Python to use its module venv
    pip
        True: install pip into the environment, by ensurepip if the program does not

    CLI Example:

        salt '*' virtualenv.create /opt/venv python=/usr/bin/python3
    """
    if not str(path).startswith("/"):
        raise InvocationError(f"'{path}' is not an absolute path")
    given = dict(locals())
    program = str(venv_bin or ctx.pillar.get("venv_bin") or ctx.opts.get("venv_bin") or _found(ctx))
    interpreted = program == "venv" or _PYTHON.fullmatch(program.rpartition("/")[2]) is not None
    words = _venv(ctx, program, given, interpreted) if interpreted or "venv" in program else None
    words = words or _virtualenv(ctx, program, given)
    words += ["--clear"] if clear else []
    words += ["--system-site-packages"] if system_site_packages else []
    real_path = ctx.host.path(path)
    existed = real_path.exists()
    options = {"runas": user, "env": env, "umask": umask, "python_shell": False, "use_vt": use_vt}
    result: dict[str, object] = ctx.call("cmd.run_all", [*words, path], **options)
    if result["retcode"]:
        if not existed and real_path.is_dir():
            # An incomplete environment would look like a complete one to the next run.
            with contextlib.suppress(OSError):
                remove_tree(real_path)
        return result
    if pip and not ctx.host.path(f"{path}/bin/pip").exists():
        more = ctx.call(
            "cmd.run_all", [f"{path}/bin/python", "-m", "ensurepip", "--upgrade", "--default-pip"], **options
        )
        texts = {key: f"{result[key]}\n{more[key]}".strip() for key in ("stdout", "stderr")}
        return {**result, **texts, "retcode": more["retcode"]}
    return result


def virtualenv_ver(ctx: Context, venv_bin: str, user: str | None = None) -> tuple[int, ...]:
    """Return the version of a virtualenv program as a tuple of numbers. Raise CommandError if it does not run."""
    command = [venv_bin, "--version"]
    result = ctx.call("cmd.run_all", command, runas=user, python_shell=False, redirect_stderr=True)
    found = re.search(r"(?:^|\s)(\d+(?:\.\d+)*)", result["stdout"])
    if result["retcode"] or found is None:
        raise CommandError(
            f"Unable to get the virtualenv version output using '{command}'. Returned data: {result['stdout']}", result
        )
    return tuple(int(part) for part in found[1].split("."))


def get_site_packages(ctx: Context, venv: str) -> str:
    """Return the path of the directory site-packages of a virtual environment. Raise CommandError if ``venv`` is not a
    virtual environment.

    CLI Example:

        salt '*' virtualenv.get_site_packages /opt/venv
    """
    return _ask(ctx, venv, _SITE_PACKAGES)


def get_distribution_path(ctx: Context, venv: str, distribution: str) -> str:
    """Return the directory in which a package of a virtual environment is installed. Raise CommandError if the
    environment or the package does not exist.

    CLI Example:

        salt '*' virtualenv.get_distribution_path /opt/venv django
    """
    return _ask(ctx, venv, _DISTRIBUTION, distribution).rstrip("/")


def get_resource_path(ctx: Context, venv: str, package: str, resource: str) -> str:
    """Return the path of a file that belongs to a package of a virtual environment. Raise CommandError if the
    package does not exist.

    CLI Example:

        salt '*' virtualenv.get_resource_path /opt/venv my_package my/resource.xml
    """
    return _ask(ctx, venv, _RESOURCE_PATH, package, resource)


def get_resource_content(ctx: Context, venv: str, package: str, resource: str) -> str:
    """Return the text of a file that belongs to a package of a virtual environment. Raise CommandError if the
    package or the file does not exist.

    CLI Example:

        salt '*' virtualenv.get_resource_content /opt/venv my_package my/resource.xml
    """
    return _ask(ctx, venv, _RESOURCE_CONTENT, package, resource)


# ----------------------------------------------------------------------------------------------- helpers


def _found(ctx: Context) -> str:
    return next((name for name in _PROGRAMS if ctx.host.which(name) is not None), "venv")


def _venv(ctx: Context, program: str, given: dict[str, Any], interpreted: bool) -> list[str]:
    """Return the command, as a list of words, that creates a virtual environment with Python's module venv, or with a
    program of that kind (pyvenv). Raise CommandError for an option that the module does not have.
    """
    python = (given["python"] or "").strip()
    if python and not interpreted:
        raise _unknown("python", "--python", program)
    if python and program != "venv":
        raise CommandError("Pass the target interpreter either as `venv_bin` or as `python`, not both.")
    for name, option in _VIRTUALENV_ONLY.items():
        if given[name] is not None and given[name] not in ("", []):
            raise _unknown(name, option, program)
    words = [program]
    if interpreted:
        words = [_interpreter(ctx, python or program) if python or program != "venv" else _own(ctx), "-m", "venv"]
    words += [option for name, option in _VENV_ONLY.items() if given[name] is True]
    prompt = (given["prompt"] or "").strip()
    return [*words, "--prompt", prompt] if prompt else words


def _virtualenv(ctx: Context, program: str, given: dict[str, Any]) -> list[str]:
    for name, option in _VENV_ONLY.items():
        if given[name] is not None:
            raise _unknown(name, option, program)
    if ctx.host.which(program) is None:
        raise CommandError(f"the host has no program {program}")
    version = virtualenv_ver(ctx, program, given["user"])
    words = [program]
    words += ["--distribute"] if given["distribute"] and version < (1, 10) else []
    if python := (given["python"] or "").strip():
        words.append(f"--python={_interpreter(ctx, python)}")
    places = given["extra_search_dir"] or []
    for place in places if isinstance(places, list | tuple) else str(places).split(","):
        words.append(f"--extra-search-dir={str(place).strip()}")
    if given["never_download"] is True:
        # These versions never download, and have no such option.
        words += [] if (1, 10) <= version < (14,) else ["--never-download"]
    elif given["never_download"] is False and version >= (20,):
        words.append("--download")
    prompt = (given["prompt"] or "").strip()
    return [*words, f"--prompt={prompt}"] if prompt else words


def _own(ctx: Context) -> str:
    """Return the path of the Python that new virtual environments use by default: the Python that runs Saltern, on a
    mounted host the host's own.
    """
    if not ctx.host.mounted:
        return sys.executable
    return _interpreter(ctx, "python3")


def _interpreter(ctx: Context, python: str) -> str:
    found = ctx.host.which(python)
    if found is None:
        raise CommandError(f"Cannot find requested python ({python}).")
    return python if python.startswith(os.sep) else found


def _unknown(argument: str, option: str, program: str) -> CommandError:
    return CommandError(f"The `{argument}`(`{option}`) option is not supported by '{program}'")


def _ask(ctx: Context, venv: str, code: str, *words: str) -> str:
    python = f"{str(venv).rstrip('/')}/bin/python"
    if not ctx.host.path(python).exists():
        raise CommandError(f"Path '{venv}' does not appear to be a virtualenv: '{python}' not found.")
    result = ctx.host.run([python, "-c", code, *words])
    if result.retcode:
        raise CommandError(f"{result.stdout}\n{result.stderr}".strip())
    return result.stdout.rstrip("\n")
