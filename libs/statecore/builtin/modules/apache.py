"""Apache's httpd on the host: Salt's ``apache`` execution module.

The functions ``a2en*`` and ``a2dis*`` need the programs of Debian (and of SUSE, for modules); the ``check_*`` functions
read the links in /etc/apache2 that these programs make.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of
from statecore.sources.http import Exchange, exchange

#: Letters of the scoreboard of mod_status.
_SCORES = "_SRWKDCLGI."


def available(ctx: Context) -> str | None:
    """Return None if the host has Apache's control program; else return the reason as text."""
    return (
        None if ctx.host.which(_program(ctx)) else f"the host has no program {_program(ctx)}: Apache is not installed"
    )


def version(ctx: Context) -> str:
    """Return the version of the server, such as "Apache/2.4.57 (Debian)".

    CLI Example:

        salt '*' apache.version
    """
    return _output(ctx, "-v").partition("\n")[0].partition(": ")[2]


def fullversion(ctx: Context) -> dict[str, object]:
    """Return Apache's version and build settings: a map of each line of ``apachectl -V``, with keys such as
    ``server_version``, and ``compiled_with``, a list of definitions.

    CLI Example:

        salt '*' apache.fullversion
    """
    found: dict[str, object] = {}
    definitions: list[str] = []
    for line in lines_of(_output(ctx, "-V")):
        if ": " in line:
            name, value = line.split(": ")[:2]
            found[name.strip().lower().replace(" ", "_")] = value.strip()
        elif " -D" in line:
            definitions.append(re.sub(r"^\s+-D\s+", "", line))
    return {"compiled_with": definitions, **found}


def modules(ctx: Context) -> dict[str, list[str]]:
    """Return the names of Apache's loaded modules: a map with the lists ``static`` and ``shared``.

    CLI Example:

        salt '*' apache.modules
    """
    lines = [line for line in lines_of(_output(ctx, "-M")) if line.split()]
    return {kind: [line.split()[0] for line in lines if f"({kind})" in line] for kind in ("static", "shared")}


def servermods(ctx: Context) -> list[str]:
    """Return the names of the source files (such as core.c) of the modules that are compiled into Apache.

    CLI Example:

        salt '*' apache.servermods
    """
    return [line.strip() for line in lines_of(_output(ctx, "-l")) if ".c" in line]


def directives(ctx: Context) -> dict[str, str]:
    """Return Apache's configuration directives: a map of directive to a text that describes it and names its module.

    CLI Example:

        salt '*' apache.directives
    """
    rows = [line.split("\t") for line in lines_of(_output(ctx, "-L").replace("\n\t", "\t")) if line]
    return {row[0]: "\n".join(row[1:]) for row in rows}


def vhosts(ctx: Context) -> dict[str, dict[str, dict[str, str]]]:
    """Return Apache's name-based virtual hosts: a map of address to a map of name to ``vhost``, ``conf`` (file and
    line) and ``port``; the name ``default`` has no port.

    CLI Example:

        salt '*' apache.vhosts
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    address = ""
    for line in lines_of(_output(ctx, "-S")):
        words = line.split()
        if "is a NameVirtualHost" in line:
            address = words[0]
            found[address] = {}
        elif words[:1] == ["default"] and address and len(words) > 3:
            found[address]["default"] = {"vhost": words[2], "conf": words[3].strip("()")}
        elif words[:1] == ["port"] and address and len(words) > 4:
            found[address][words[3]] = {"vhost": words[3], "conf": words[4].strip("()"), "port": words[1]}
    return found


def signal(ctx: Context, signal: str | None = None) -> str | None:
    """Start, stop, restart or check Apache. Return the program's output, or a sentence that it succeeded if it
    prints nothing. Return None for an unknown ``signal``.

    signal
        start, stop, restart, graceful, graceful-stop, configtest, status or fullstatus

    CLI Example:

        salt '*' apache.signal graceful
    """
    if signal in ("start", "stop", "restart", "graceful", "graceful-stop"):
        words = ["-k", signal]
    elif signal in ("configtest", "status", "fullstatus"):
        words = [signal]
    else:
        return None
    program = _program(ctx)
    result = ctx.call("cmd.run_all", [program, *words], python_shell=False)
    said = str(result["stderr"]).strip() or str(result["stdout"]).strip()
    return said or f'Command: "{program} {" ".join(words)}" completed successfully!'


def useradd(ctx: Context, pwfile: str, user: str, password: str, opts: str = "") -> object:
    """Add a user to an htpasswd file by ``webutil.useradd``, and return that function's map with retcode, stdout and
    stderr.

    CLI Example:

        salt '*' apache.useradd /etc/apache2/htpasswd ann secret
    """
    return ctx.call("webutil.useradd", pwfile, user, password, opts)


def userdel(ctx: Context, pwfile: str, user: str) -> object:
    """Remove a user from an htpasswd file by ``webutil.userdel``, and return that function's result: the lines of
    htpasswd's output, or a sentence if there is no such file.

    CLI Example:

        salt '*' apache.userdel /etc/apache2/htpasswd ann
    """
    return ctx.call("webutil.userdel", pwfile, user)


def server_status(ctx: Context, profile: str = "default") -> dict[str, object] | str:
    """Return the figures of Apache's mod_status: a map of each line, and ``Scoreboard`` as a map of letter to
    number. Return "error" if the server does not answer.

    profile
        name in the option ``apache.server-status``: a map with ``url``, ``user``, ``pass`` and ``timeout``

    CLI Example:

        salt '*' apache.server_status
    """
    settings = {
        name: ctx.call("config.get", f"apache.server-status:{profile}:{name}", default)
        for name, default in (("url", "http://localhost/server-status"), ("user", ""), ("pass", ""), ("timeout", 5))
    }
    login = (str(settings["user"]), str(settings["pass"])) if settings["user"] and settings["pass"] else None
    seconds = float(settings["timeout"])
    try:
        answer = exchange(
            Exchange(url=f"{settings['url']}?auto", login=login, timeout=seconds, connect_timeout=seconds)
        )
    except CommandError:
        return "error"
    if answer.status >= 400:
        return "error"
    scores = dict.fromkeys(_SCORES, 0)
    found: dict[str, object] = {"Scoreboard": scores}
    for line in lines_of(answer.body.decode("utf-8", "replace")):
        name, _, value = (each.strip() for each in line.partition(":"))
        if name == "Scoreboard":
            for letter in value:
                scores[letter] = scores.get(letter, 0) + 1
        elif value:
            found[name] = _number(value)
    return found


def config(ctx: Context, name: str, config: Sequence[Mapping[str, object]], edit: bool = True) -> str:
    """Write a configuration file of Apache from data, and return its text.

    config
        list of maps of directive to value. A map with the key ``this`` is a section: ``this`` is its argument, the other
        keys its directives. A list repeats the directive.
    edit
        False: only return the text

    CLI Example:

        salt '*' apache.config /etc/apache2/ports.conf config="[{'Listen': '22'}]"
    """
    text = "\n".join(_rendered(entry[key], str(key)) for entry in config for key in list(entry)[:1])
    if edit:
        managed_file.replace(
            ctx.host, ctx.host.path(name), f"# This file is managed by Salt.\n{text}".encode(), Attributes()
        )
    return text


# ---------------------------------------------------------------------------------------------------- Debian


def check_site_enabled(ctx: Context, site: str) -> bool:
    """Return whether a site of Apache is enabled (linked in ``sites-enabled``); ``default`` is also enabled as
    ``000-default``.

    CLI Example:

        salt '*' apache.check_site_enabled example.com
    """
    names = [_conf(site)] + ([f"000-{_conf(site)}"] if site == "default" else [])
    return any(_is_link(ctx, f"sites-enabled/{name}") for name in names)


def a2ensite(ctx: Context, site: str) -> dict[str, object]:
    """Enable a site of Apache. Return a map with ``Name``, ``Site`` and ``Status``: a sentence, or the exit code of
    a failure. Raise CommandError if the host has no a2ensite.

    CLI Example:

        salt '*' apache.a2ensite example.com
    """
    return _switched(ctx, "a2ensite", "Site", site)


def a2dissite(ctx: Context, site: str) -> dict[str, object]:
    """Disable a site of Apache. Return a map with ``Name``, ``Site`` and ``Status``, as ``apache.a2ensite`` does.

    CLI Example:

        salt '*' apache.a2dissite example.com
    """
    return _switched(ctx, "a2dissite", "Site", site)


def check_mod_enabled(ctx: Context, mod: str) -> bool:
    """Return whether a module of Apache is enabled (linked in ``mods-enabled``). ``mod`` may end in ``.load`` or
    ``.conf``.

    CLI Example:

        salt '*' apache.check_mod_enabled rewrite
    """
    return _is_link(ctx, f"mods-enabled/{mod if mod.endswith(('.load', '.conf')) else f'{mod}.load'}")


def a2enmod(ctx: Context, mod: str) -> dict[str, object]:
    """Enable a module of Apache. Return a map with ``Name``, ``Mod`` and ``Status``, as ``apache.a2ensite`` does.

    CLI Example:

        salt '*' apache.a2enmod rewrite
    """
    return _switched(ctx, "a2enmod", "Mod", mod)


def a2dismod(ctx: Context, mod: str) -> dict[str, object]:
    """Disable a module of Apache. Return a map with ``Name``, ``Mod`` and ``Status``, as ``apache.a2ensite`` does.

    CLI Example:

        salt '*' apache.a2dismod rewrite
    """
    return _switched(ctx, "a2dismod", "Mod", mod)


def check_conf_enabled(ctx: Context, conf: str) -> bool:
    """Return whether a configuration file of Apache's ``conf-available`` is enabled (linked in ``conf-enabled``).

    CLI Example:

        salt '*' apache.check_conf_enabled security
    """
    return _is_link(ctx, f"conf-enabled/{_conf(conf)}")


def a2enconf(ctx: Context, conf: str) -> dict[str, object]:
    """Enable a configuration file of Apache. Return a map with ``Name``, ``Conf`` and ``Status``, as
    ``apache.a2ensite`` does.

    CLI Example:

        salt '*' apache.a2enconf security
    """
    return _switched(ctx, "a2enconf", "Conf", conf)


def a2disconf(ctx: Context, conf: str) -> dict[str, object]:
    """Disable a configuration file of Apache. Return a map with ``Name``, ``Conf`` and ``Status``, as
    ``apache.a2ensite`` does.

    CLI Example:

        salt '*' apache.a2disconf security
    """
    return _switched(ctx, "a2disconf", "Conf", conf)


# --------------------------------------------------------------------------------------------------- helpers


def _program(ctx: Context) -> str:
    return "apache2ctl" if ctx.grains.get("os_family") in ("Debian", "Suse") else "apachectl"


def _output(ctx: Context, option: str) -> str:
    return str(ctx.call("cmd.run", [_program(ctx), option], python_shell=False))


def _conf(name: str) -> str:
    return name if name.endswith(".conf") else f"{name}.conf"


def _is_link(ctx: Context, name: str) -> bool:
    return ctx.host.path(f"/etc/apache2/{name}", follow=False).is_symlink()


def _switched(ctx: Context, program: str, kind: str, name: str) -> dict[str, object]:
    if ctx.host.which(program) is None:
        raise CommandError(f"the host has no program {program}")
    enable = program.startswith("a2en")
    code = ctx.call("cmd.retcode", [program, name], python_shell=False, ignore_retcode=True)
    verb = "enabled" if enable else "disabled"
    status: object = f"{kind} {name} {verb}" if code == 0 else code
    if code == 1 and enable:
        status = f"{kind} {name} Not found"
    return {"Name": f"Apache2 {'Enable' if enable else 'Disable'} {kind}", kind: name, "Status": status}


def _number(text: str) -> object:
    if text.isdecimal():
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def _rendered(value: object, slot: str) -> str:
    """Return the text of the directive or section ``slot`` for Apache's configuration file, laid out as by Salt.
    ``value`` is its argument, a list to repeat the directive, or a map of a section. Raise CommandError for a
    section without ``this``.
    """
    if isinstance(value, list):
        head = next((str(each["this"]) for each in value if isinstance(each, Mapping) and "this" in each), None)
        if head is None:
            return "".join(f"{_rendered(each, slot)}\n" for each in value)
        rows = [(key, each[key]) for each in value if isinstance(each, Mapping) for key in each if key != "this"]
        inside = "".join(f"{_rendered(each, str(key))}\n" for key, each in rows)
        return f"<{slot} {head}>\n{inside}</{slot}>\n"
    if isinstance(value, Mapping):
        if "this" not in value:
            raise CommandError(f'Apache section container "<{slot}>" expects attribute. Specify it using key "this".')
        inside = "".join(f"{_rendered(each, str(key))}\n" for key, each in value.items() if key != "this")
        return f"<{slot} {value['this']}>\n{inside}</{slot}>\n"
    return f"{slot} {value}"
