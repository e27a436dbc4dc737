"""The module ``postgres`` and its states against a real server, through its own psql; real Salt speaks to the same one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError, NotAvailable
from statecore.model.ports import CommandResult
from statecore.system.databases import postgres
from tests.statecore import database_servers

AWKWARD = "o'brien\\ \"; DROP TABLE x; -- %_ü"

#: A role that is no owner, and an object.
GOODS = {"name": "mine", "object_name": "goods", "maintenance_db": "shop"}

#: One after the other, on one server: Salt's comments and changes, but for those of test mode.
STEPS = [
    ("postgres_group.present", {"name": "staff"}),
    ("postgres_group.present", {"name": "staff", "createdb": True}),
    ("postgres_user.present", {"name": "frank", "password": "one", "encrypted": "scram-sha-256"}),
    ("postgres_user.present", {"name": "frank", "password": "two", "encrypted": "scram-sha-256"}),
    ("postgres_user.present", {"name": "frank", "createdb": True, "login": True, "inherit": False}),
    ("postgres_user.present", {"name": "frank", "groups": "staff", "createdb": True}),
    ("postgres_user.present", {"name": "old", "password": "one", "encrypted": "md5", "replication": True}),
    ("postgres_user.present", {"name": "old", "valid_until": "2099-01-01", "superuser": True}),
    ("postgres_user.present", {"name": "mine", "default_password": "x", "createroles": True}),
    ("postgres_user.present", {"name": "mine", "default_password": "y", "createroles": True}),
    ("postgres_database.present", {"name": "shop", "owner": "frank", "encoding": "UTF8", "template": "template0"}),
    ("postgres_database.present", {"name": "shop", "owner": "old"}),
    ("postgres_database.present", {"name": "shop", "encoding": "LATIN1"}),
    ("postgres_extension.present", {"name": "hstore", "maintenance_db": "shop"}),
    ("postgres_extension.absent", {"name": "hstore", "maintenance_db": "shop"}),
    ("postgres_schema.present", {"dbname": "shop", "name": "goods", "owner": "frank"}),
    ("postgres_privileges.present", {**GOODS, "object_type": "schema", "privileges": ["USAGE"]}),
    ("postgres_privileges.present", {**GOODS, "object_type": "schema", "privileges": ["USAGE"]}),
    ("postgres_privileges.absent", {**GOODS, "object_type": "schema", "privileges": ["USAGE"]}),
    (
        "postgres_privileges.present",
        {**GOODS, "object_name": "shop", "object_type": "database", "privileges": ["CREATE"]},
    ),
    ("postgres_privileges.present", {**GOODS, "object_name": "staff", "object_type": "group"}),
    ("postgres_privileges.present", {**GOODS, "object_name": "staff", "object_type": "group"}),
    ("postgres_privileges.absent", {**GOODS, "object_name": "staff", "object_type": "group"}),
    (
        "postgres_privileges.absent",
        {**GOODS, "object_name": "shop", "object_type": "database", "privileges": ["CREATE"]},
    ),
    ("postgres_language.present", {"maintenance_db": "shop", "name": "plpgsql"}),
    ("postgres_tablespace.absent", {"name": "none"}),
    ("postgres_schema.absent", {"dbname": "shop", "name": "goods"}),
    ("postgres_database.absent", {"name": "shop"}),
    ("postgres_user.absent", {"name": "frank"}),
    ("postgres_user.absent", {"name": "old"}),
    ("postgres_user.absent", {"name": "mine"}),
    ("postgres_group.absent", {"name": "staff"}),
]


@pytest.fixture(scope="module")
def directory():
    with database_servers.postgres() as found:
        yield found


@pytest.fixture
def server(directory, plain):
    """The minion, with a connection to an empty server."""
    plain.to = {"host": str(directory), "runas": "postgres"}
    plain.by = {"db_host": str(directory), "user": "postgres"}
    plain.host = Host("/")
    plain.fresh = lambda **more: plain.context(host=plain.host, **more)
    plain.ask = lambda function, *args, **kw: plain.fresh().call(f"postgres.{function}", *args, **{**plain.to, **kw})
    for name in plain.ask("db_list"):
        if name not in ("postgres", "template0", "template1"):
            plain.ask("db_remove", name)
    for name in plain.ask("user_list"):
        if name != "postgres" and not name.startswith("pg_"):
            plain.ask("user_remove", name)
    return plain


def phases(server, state, **arguments):
    """[result, changes, comment] in test mode, applied, and applied again."""
    told = []
    for test in (True, False, False):
        each = server.fresh(test=test).states[state](**{**server.by, **arguments})
        told.append([each["result"], each["changes"], each["comment"]])
    return told


def test_steps(server):
    for state, arguments in STEPS:
        would, does, again = phases(server, state, **arguments)
        if arguments.get("encoding") == "LATIN1":
            assert [would[0], does[0], again[0]] == [False] * 3
            continue
        assert (would[1], does[0], again[0], again[1]) == (does[1], True, True, {}), (state, arguments)
        assert would[0] is (None if does[1] else True)


@pytest.mark.oracle
def test_steps_are_salts(server, oracle, tmp_path):
    asked = {"cachedir": str(tmp_path), "calls": [[state, {**server.by, **arguments}] for state, arguments in STEPS]}
    done = subprocess.run(
        [oracle.venv / "bin/python", Path(__file__).parents[2] / "salt_state_calls.py"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=115,
    )
    assert done.returncode == 0, done.stderr
    salts = json.loads(done.stdout)
    ours = [phases(server, state, **arguments) for state, arguments in STEPS]
    for (state, arguments), mine, theirs in zip(STEPS, ours, salts, strict=True):
        assert [mine[0][0], mine[0][2], mine[1], mine[2]] == [theirs[0][0], theirs[0][2], theirs[1], theirs[2]], (
            state,
            arguments,
        )


@pytest.mark.parametrize("name", ["frank", AWKWARD])
@pytest.mark.parametrize("method", ["md5", "scram-sha-256"])
def test_a_password_lets_in(name, method, server):
    told = phases(server, "postgres_user.present", name=name, password=AWKWARD, encrypted=method, superuser=True)
    assert [each[0] for each in told] == [None, True, True]
    kept = server.ask("role_get", name, return_password=True)["password"]
    assert kept.startswith("md5" if method == "md5" else "SCRAM-SHA-256$4096:")
    if method == "scram-sha-256":
        login = {"user": name, "runas": None}
        assert server.ask("version", password=AWKWARD, maintenance_db="postgres", **login)
        with pytest.raises(CommandError, match="password authentication failed") as refused:
            server.ask("version", password="s3cret", maintenance_db="postgres", **login)
        assert "s3cret" not in str(refused.value)
    assert phases(server, "postgres_user.absent", name=name)[1][2] == f"User {name} has been removed"


@pytest.mark.parametrize("name", ["a-b c", 'quo"te', "o'brien", "Größe", "x; DROP"])
def test_databases_of_any_name(name, server):
    assert [each[1] for each in phases(server, "postgres_database.present", name=name)] == [
        {name: "Present"},
        {name: "Present"},
        {},
    ]
    assert name in server.ask("db_list")
    to = {"dbname": name, "name": name}
    assert phases(server, "postgres_schema.present", **to)[2][2] == f"Schema {name} already exists in database {name}"
    assert phases(server, "postgres_schema.absent", **to)[1][1] == {name: "Absent"}
    assert [each[1] for each in phases(server, "postgres_database.absent", name=name)][2] == {}


def test_all_that_is_in_a_database_changes_hands(server):
    server.ask("user_create", "o'new")
    server.ask("db_create", "shop")
    inside = {"maintenance_db": "shop"}
    made = (
        'CREATE SCHEMA "a b"; CREATE TABLE "a b"."t" (id serial); CREATE VIEW v AS SELECT 1; CREATE SEQUENCE s;'
        "CREATE FUNCTION f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE PROCEDURE p() LANGUAGE sql AS 'SELECT 1';"
    )
    server.host.run(["psql", "-qh", server.to["host"], "shop"], stdin=made, runas="postgres")
    told = phases(server, "postgres_database.present", name="shop", owner="o'new", owner_recurse=True)
    assert told[1] == [True, {"shop": "Parameters changed"}, "Parameters for database shop have been changed"]
    owners = server.ask(
        "psql_query",
        "SELECT DISTINCT r.rolname AS o FROM (SELECT relowner AS w, relnamespace AS n FROM pg_class UNION SELECT proowner,"
        " pronamespace FROM pg_proc UNION SELECT nspowner, oid FROM pg_namespace) x JOIN pg_roles r ON r.oid = w JOIN"
        " pg_namespace q ON q.oid = n WHERE q.nspname !~ '^pg_' AND q.nspname <> 'information_schema'",
        **inside,
    )
    assert owners == [{"o": "o'new"}]
    server.ask("db_remove", "shop")


#: object_type -> name, privileges, and what the owner has by default on a new one.
OBJECTS = {
    "table": ("t x", ["SELECT", "INSERT"]),
    "sequence": ("s", ["USAGE"]),
    "function": ("f(integer, text)", ["EXECUTE"]),
    "schema": ("sch'ema", ["CREATE"]),
    "language": ("plpgsql", ["USAGE"]),
    "database": ("shop", ["CREATE", "TEMPORARY"]),
}

MADE = """CREATE SCHEMA "sch'ema"; CREATE TABLE "sch'ema"."t x" (id int); CREATE TABLE "sch'ema".u (id int);
CREATE SEQUENCE "sch'ema".s;
CREATE FUNCTION "sch'ema".f(a int, b text) RETURNS int LANGUAGE sql AS 'SELECT 1';
REVOKE EXECUTE ON FUNCTION "sch'ema".f(int, text) FROM PUBLIC; REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC;
REVOKE TEMPORARY ON DATABASE shop FROM PUBLIC;"""


@pytest.fixture
def shop(server):
    """A database with objects, and a role that is nobody."""
    server.ask("db_create", "shop")
    server.host.run(["psql", "-qh", server.to["host"], "shop"], stdin=MADE, runas="postgres")
    server.ask("user_create", AWKWARD)
    yield {"name": AWKWARD, "maintenance_db": "shop", "prepend": "sch'ema"}
    server.ask("db_remove", "shop")


@pytest.mark.parametrize("kind", OBJECTS)
def test_privileges(kind, server, shop):
    name, privileges = OBJECTS[kind]
    whole = {**shop, "object_name": name, "object_type": kind}
    call = {**whole, "privileges": privileges}
    changed = {AWKWARD: "Present"}
    for option in (None, True) if kind == "table" else (True,):
        told = phases(server, "postgres_privileges.present", **call, grant_option=option)
        assert [each[:2] for each in told] == [[None, changed], [True, changed], [True, {}]], told
    listed = server.ask("privileges_list", name, kind, prepend=shop["prepend"], maintenance_db="shop")
    assert listed[AWKWARD] == dict.fromkeys(privileges, True)
    # What it has in part goes.
    told = phases(server, "postgres_privileges.absent", **whole, privileges=["ALL"])
    assert [each[1] for each in told] == [{AWKWARD: "Absent"}, {AWKWARD: "Absent"}, {}]
    if kind == "table":
        # The owner may, unless somebody said otherwise.
        owner = {**call, "name": "postgres"}
        set_already = "The requested privilege(s) are already set"
        assert phases(server, "postgres_privileges.present", **owner)[0][2] == set_already
        assert phases(server, "postgres_privileges.absent", **owner)[2][1] == {}
        assert phases(server, "postgres_privileges.present", **owner)[1][1] == {"postgres": "Present"}


def test_privileges_of_all_and_on_all(server, shop):
    call = {**shop, "object_name": "ALL", "object_type": "table", "privileges": "ALL"}
    for name in ("public", AWKWARD):
        told = phases(server, "postgres_privileges.present", **{**call, "name": name})
        assert [each[1] for each in told] == [{name: "Present"}, {name: "Present"}, {}]
        held = server.ask("privileges_list", "u", "table", prepend=shop["prepend"], maintenance_db="shop")
        assert len(held[name]) >= 7
    one = {**call, "object_name": "u", "privileges": ["SELECT"], "name": "public"}
    assert phases(server, "postgres_privileges.absent", **one)[1][0] is True
    assert server.ask("has_privileges", "public", "ALL", "table", "SELECT", None, "sch'ema", "shop") is False
    assert (
        phases(server, "postgres_privileges.present", **{**call, "object_name": "ALL", "prepend": "none"})[0][0] is True
    )


def test_members_of_a_group(server):
    server.ask("group_create", 'the "staff"')
    server.ask("user_create", AWKWARD)
    call = {"name": AWKWARD, "object_name": 'the "staff"', "object_type": "group"}
    for option in (None, True):
        told = phases(server, "postgres_privileges.present", **call, grant_option=option)
        assert [each[1] for each in told] == [{AWKWARD: "Present"}, {AWKWARD: "Present"}, {}]
    assert server.ask("privileges_list", 'the "staff"', "group") == {AWKWARD: True}
    assert phases(server, "postgres_privileges.absent", **call)[2][1] == {}
    assert server.ask("privileges_list", 'the "staff"', "group") == {}


def test_tablespaces(server, directory):
    server.ask("user_create", "o'new")
    for name in ("one", "two"):
        place = directory / name
        place.mkdir()
        shutil.chown(place, "postgres")
    call = {"name": 'sp"ace', "directory": str(directory / "one")}
    for more in ({}, {"owner": "o'new"}, {"options": {"seq_page_cost": "2.0", "random_page_cost": 3}}):
        told = phases(server, "postgres_tablespace.present", **call, **more)
        assert [each[0] for each in told] == [None, True, True]
        assert (told[0][1], told[2][1]) == (told[1][1], {})
    assert server.ask("tablespace_list")['sp"ace']["Owner"] == "o'new"
    wrong = phases(server, "postgres_tablespace.present", **{**call, "directory": str(directory / "two")})
    assert [each[0] for each in wrong] == [False] * 3
    assert "is not at the right location" in wrong[0][2]
    assert server.ask("tablespace_alter", 'sp"ace', new_name="b", reset_option="seq_page_cost") is True
    assert "seq_page_cost" not in server.ask("tablespace_list")["b"]["Opts"]
    assert [each[1] for each in phases(server, "postgres_tablespace.absent", name="b")] == [
        {"b": "Absent"},
        {"b": "Absent"},
        {},
    ]


def test_languages(server):
    server.ask("db_create", "shop")
    for state, wanted in (("absent", "Absent"), ("present", "Present")):
        told = phases(server, f"postgres_language.{state}", name="plpgsql", maintenance_db="shop")
        assert [each[1] for each in told] == [{"plpgsql": wanted}, {"plpgsql": wanted}, {}]
    server.ask("db_remove", "shop")


def test_a_data_directory(server, directory):
    call = {"name": str(directory / "new"), "password": "pa55 word", "user": "boss", "checksums": True}
    told = []
    for test in (True, False, False):
        each = server.fresh(test=test).states["postgres_initdb.present"](**call)
        told.append([each["result"], each["changes"], each["comment"]])
    place = call["name"]
    assert told == [
        [None, {place: "Present"}, f"Postgres data directory {place} is set to be initialized"],
        [True, {place: "Present"}, f"Postgres data directory {place} has been initialized"],
        [True, {}, f"Postgres data directory {place} is already present"],
    ]
    assert "password" in (directory / "new/pg_hba.conf").read_text()
    assert list(Path("/tmp").glob(".saltern-postgres-*")) == []
    failed = server.fresh().states["postgres_initdb.present"](
        name=str(directory / "x"), encoding="EBCDIC", auth="trust"
    )
    assert failed["result"] is False
    assert '"EBCDIC" is not a valid server encoding name' in failed["comment"]
    assert not (directory / "x").exists()


@pytest.mark.parametrize(
    ("state", "arguments", "says"),
    [
        (
            "postgres_privileges.present",
            {"object_name": "t", "object_type": "cupboard"},
            "Invalid object_type: cupboard provided; there are table",
        ),
        (
            "postgres_privileges.present",
            {"object_name": "t", "object_type": "table", "privileges": ["USAGE"]},
            "Invalid privilege(s): USAGE provided for object table; there are SELECT",
        ),
        (
            "postgres_privileges.present",
            {"object_name": "t", "object_type": "table"},
            "Invalid privilege(s):  provided for object table",
        ),
        (
            "postgres_privileges.present",
            {"object_name": "t", "object_type": "group", "privileges": ["SELECT"]},
            "should not be set for object_type group",
        ),
        (
            "postgres_privileges.absent",
            {"object_name": "t", "object_type": "table", "privileges": ["SELECT"]},
            "the database has no table t in the schema public",
        ),
        (
            "postgres_privileges.present",
            {"object_name": "public", "object_type": "schema", "privileges": ["CREATE"], "name": "nobody"},
            'Failed to grant privilege(s): CREATE to nobody (ERROR:  role "nobody" does not exist)',
        ),
        (
            "postgres_tablespace.present",
            {"directory": "/none"},
            'Failed to create tablespace x (ERROR:  directory "/none" does',
        ),
        ("postgres_tablespace.present", {"directory": "/none", "options": {"a b": 1}}, "'a b' is not an option"),
        ("postgres_tablespace.present", {"directory": "/none", "options": {"a": "b"}}, "are numbers, not 'b'"),
        ("postgres_language.present", {"maintenance_db": "postgres"}, "Failed to install language x (ERROR:"),
        ("postgres_user.present", {"encrypted": False}, "not supported: encrypted: False"),
        ("postgres_user.present", {"encrypted": "rot13"}, "Unknown password algorithm: rot13"),
        ("postgres_user.present", {"createdb": "yes"}, "createdb: True or False"),
        ("postgres_user.present", {"groups": 5}, "groups is a list"),
        ("postgres_user.present", {"groups": ["none"]}, 'Failed to create user x (ERROR:  role "none" does not exist)'),
        ("postgres_user.present", {"db_port": "x"}, "port is a number"),
        ("postgres_user.present", {"db_host": "/none"}, "No such file or directory"),
        ("postgres_user.present", {"maintenance_db": "dbname=x host=y"}, "maintenance_db is a name"),
        ("postgres_database.present", {"owner": "none"}, 'Failed to create database x (ERROR:  role "none" does not'),
        ("postgres_database.present", {"encoding": "x'; DROP"}, "Failed to create database x (ERROR:"),
        ("postgres_extension.present", {"name": "none"}, "Failed to install extension none (the server has no"),
        ("postgres_schema.present", {"dbname": "none"}, 'database "none" does not exist'),
    ],
)
def test_what_is_wrong_is_told(state, arguments, says, server):
    told = server.fresh().states[state](**{"name": "x", **server.by, **arguments})
    assert (told["result"], told["changes"]) == (False, {})
    assert says in told["comment"]
    assert server.ask("user_exists", "x") is False


def test_secrets_are_in_no_command_line(server, monkeypatch):
    seen = []
    run = Host.run

    def watched(self, cmd, **options):
        seen.append(cmd)
        for path in Path("/tmp").glob(".saltern-postgres-*"):
            assert path.stat().st_mode & 0o777 == 0o600
        return run(self, cmd, **options)

    monkeypatch.setattr(Host, "run", watched)
    server.ask("user_create", "frank", rolepassword="pa55word", password="unused")
    assert seen
    assert not any("pa55word" in str(each) or "unused" in str(each) for each in seen)
    assert list(Path("/tmp").glob(".saltern-postgres-*")) == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30))
def test_any_text_comes_back_from_the_server(text, server):
    query = f"SELECT encode(convert_to({postgres.literal(text)}, 'UTF8'), 'hex') AS h"
    assert bytes.fromhex(server.ask("psql_query", query)[0]["h"]).decode() == text


# ------------------------------------------------------------------------------------------------ without a server


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_an_identifier_is_one_or_refused(text):
    if not text or any(ord(each) < 32 for each in text):
        with pytest.raises(InvocationError, match="is not a valid name"):
            postgres.identifier(text)
    else:
        assert '"' not in postgres.identifier(text)[1:-1].replace('""', "")


@pytest.mark.parametrize("method", postgres.METHODS)
@given(password=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
@settings(max_examples=20, deadline=None)
def test_a_password_is_known_again(method, password):
    verifier = postgres.stored_hash("frank", password, method)
    assert postgres.is_stored_hash("frank", password, verifier, method)
    assert not postgres.is_stored_hash("frank", password + "x", verifier, method)


@pytest.mark.parametrize(
    "password", ["pass word", "ⅸ", "\u00adsoft", "ünïcode", "a\u0000b", "\u0627\u0031", "\uff46ull"]
)
@pytest.mark.oracle
def test_passwords_are_prepared_as_salt_does(password, oracle):
    asked = (
        "import sys, json; from salt.modules import postgres as p; password, mine = json.load(sys.stdin)\n"
        "try: print(p._verify_password('frank', password, mine, 'scram-sha-256'))\n"
        "except ValueError: print('refused')"
    )
    mine = postgres.stored_hash("frank", password, "scram-sha-256")
    done = subprocess.run(
        [oracle.venv / "bin/python", "-c", asked], input=json.dumps([password, mine]), capture_output=True, text=True
    )
    # What may not be in a password, Salt refuses; the server takes it as it is.
    assert done.stdout.strip() in ("True", "refused"), done.stderr


def test_a_host_without_a_client(plain):
    with pytest.raises(NotAvailable, match="the host has no psql"):
        plain.state("postgres_user.present", name="x")


def test_the_mounted_hosts_client_is_asked(plain):
    """As its own system user, with a file of the host for the password."""
    seen = {}

    class Mounted(Host):
        def which(self, program):
            return "/usr/bin/psql"

        def run(self, cmd, **options):
            file = Path(plain.root, options["env"]["PGPASSFILE"].lstrip("/"))
            seen.update(cmd=cmd, text=file.read_text(), mode=file.stat().st_mode & 0o777, **options)
            return CommandResult(0, "Name,Owner\n", "", 1)

    (plain.root / "tmp").mkdir()
    (plain.root / "etc").mkdir()
    (plain.root / "etc/passwd").write_text("postgres:x:33:33::/:/bin/sh\n")
    ctx = plain.context(host=Mounted(plain.root))
    assert ctx.call("postgres.db_list", host="db", port=5433, password="a:b\\", user="me") == {}
    assert seen["cmd"][-8:] == ["--username", "me", "--host", "db", "--port", "5433", "--dbname", "postgres"]
    assert (seen["text"], seen["mode"], seen["runas"]) == ("*:*:*:*:a\\:b\\\\\n", 0o600, None)
    assert list((plain.root / "tmp").iterdir()) == []
