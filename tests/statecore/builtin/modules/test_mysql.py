"""The module ``mysql`` and its states against a real MariaDB server, through its own client."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError, NotAvailable
from statecore.model.ports import CommandResult
from statecore.system.databases import mysql
from tests.statecore import database_servers

AWKWARD = "o'br`ien\\ \"; DROP TABLE x; -- \n\t%_ü"


class Client(Host):
    """This machine, whose client program may lie in a directory of its own."""

    def which(self, program):
        return super().which(f"{database_servers.MARIADB}/usr/bin/{program}")

    def run(self, cmd, **options):
        self.last = [*cmd]
        env = {"LD_LIBRARY_PATH": f"{database_servers.MARIADB}/usr/lib/x86_64-linux-gnu"}
        return super().run([f"{database_servers.MARIADB}/usr/bin/{cmd[0]}", *cmd[1:]], env=env, **options)


@pytest.fixture(scope="module")
def socket(tmp_path_factory):
    with database_servers.mariadb(tmp_path_factory.mktemp("mariadb")) as found:
        yield str(found)


@pytest.fixture
def server(socket, plain):
    """The minion, with a connection to an empty server."""
    plain.to = {"connection_unix_socket": socket, "connection_user": "root"}
    plain.client = Client("/")
    plain.fresh = lambda **more: plain.context(host=plain.client, **more)
    plain.ask = lambda function, *args, **kwargs: plain.fresh().call(
        f"mysql.{function}", *args, **{**plain.to, **kwargs}
    )
    for name in plain.ask("db_list"):
        if name not in ("mysql", "information_schema", "performance_schema", "sys"):
            plain.ask("db_remove", name)
    for each in plain.ask("user_list"):
        if each["User"] not in ("root", "mysql", "mariadb.sys"):
            plain.ask("user_remove", each["User"], each["Host"])
    return plain


def phases(server, state, **arguments):
    """(result, changes, comment) in test mode, applied, and applied again."""
    told = []
    for test in (True, False, False):
        each = server.fresh(test=test).states[state](**{**server.to, **arguments})
        told.append((each["result"], each["changes"], each["comment"]))
    return told


@pytest.mark.parametrize("name", ["shop", "a-b`c", "o'brien", "under_score", "größe", "a b;c"])
def test_databases(name, server):
    assert phases(server, "mysql_database.present", name=name) == [
        (None, {name: "Present"}, f"Database {name} is not present and needs to be created"),
        (True, {name: "Present"}, f"The database {name} has been created"),
        (True, {}, f"Database {name} is already present"),
    ]
    assert name in server.ask("db_list")
    assert phases(server, "mysql_database.absent", name=name) == [
        (None, {name: "Absent"}, f"Database {name} is present and needs to be removed"),
        (True, {name: "Absent"}, f"Database {name} has been removed"),
        (True, {}, f"Database {name} is not present, so it cannot be removed"),
    ]
    assert name not in server.ask("db_list")


def test_character_sets(server):
    server.ask("db_create", "d", "latin1", "latin1_swedish_ci")
    changes = {
        "character_set": {"before": "latin1", "now": "utf8mb4"},
        "collate": {"before": "latin1_swedish_ci", "now": "utf8mb4_bin"},
    }
    lines = (
        "Database character set utf8mb4 != latin1 needs to be updated\n"
        "Database collate utf8mb4_bin != latin1_swedish_ci needs to be updated"
    )
    told = phases(server, "mysql_database.present", name="d", character_set="utf8mb4", collate="utf8mb4_bin")
    assert told == [
        (None, changes, f"{lines}\nDatabase d is going to be updated"),
        (True, changes, lines),
        (True, {}, "Database d is already present"),
    ]
    told = server.fresh().states["mysql_database.present"](name="e", character_set="x y", **server.to)
    assert (told["result"], "character_set is a word" in told["comment"]) == (False, True)
    told = server.fresh().states["mysql_database.absent"](name="mysql", **server.to)
    assert told["comment"] == "Unable to remove database mysql (DB 'mysql' may not be removed)"


@pytest.mark.parametrize("name", ["frank", AWKWARD.replace("\n", "")])
@pytest.mark.parametrize("host", ["localhost", "%", "10.0.0.0/255.0.0.0"])
def test_users(name, host, server):
    assert phases(server, "mysql_user.present", name=name, host=host, password=AWKWARD) == [
        (None, {name: "Present"}, f"User {name}@{host} is set to be added"),
        (True, {name: "Present"}, f"The user {name}@{host} has been added"),
        (True, {}, f"User {name}@{host} is already present with the desired password"),
    ]
    assert {"User": name, "Host": host} in server.ask("user_list")
    if host == "localhost":
        assert server.ask("verify_login", name, AWKWARD.replace("\n", "")) is False
    assert phases(server, "mysql_user.present", name=name, host=host, password_hash=mysql.native_hash("new")) == [
        (None, {name: "Updated"}, f"Password for user {name}@{host} is set to be changed"),
        (True, {name: "Updated"}, f"Password for user {name}@{host} has been changed"),
        (True, {}, f"User {name}@{host} is already present with the desired password hash"),
    ]
    if host == "localhost":
        assert [server.ask("verify_login", name, each) for each in ("new", "old")] == [True, False]
    assert phases(server, "mysql_user.absent", name=name, host=host) == [
        (None, {name: "Absent"}, f"User {name}@{host} is set to be removed"),
        (True, {name: "Absent"}, f"User {name}@{host} has been removed"),
        (True, {}, f"User {name}@{host} is not present, so it cannot be removed"),
    ]


def test_users_without_a_password(server):
    told = phases(server, "mysql_user.present", name="free", allow_passwordless=True)
    assert told[1:] == [
        (True, {"free": "Present"}, "The user free@localhost has been added with passwordless login"),
        (True, {}, "User free@localhost is already present with passwordless login"),
    ]
    told = phases(server, "mysql_user.present", name="free", password="now")
    assert told[1][1] == {"free": "Updated"}
    told = phases(server, "mysql_user.present", name="free", allow_passwordless=True)
    assert [each[2] for each in told] == [
        "Password for user free@localhost is set to be cleared",
        "Password for user free@localhost has been cleared",
        "User free@localhost is already present with passwordless login",
    ]
    told = phases(server, "mysql_user.present", name="sock", unix_socket=True)
    assert told[1:] == [
        (True, {"sock": "Present"}, "The user sock@localhost has been added using unix_socket"),
        (True, {}, "User sock@localhost is already present"),
    ]
    told = server.fresh().states["mysql_user.present"](name="far", host="%", unix_socket=True, **server.to)
    assert told["comment"].startswith(
        "Failed to create user far@% (unix_socket: only an account with the host localhost"
    )
    told = server.fresh().states["mysql_user.present"](name="x", **server.to)
    assert told["comment"] == "Either password or password_hash must be specified, unless allow_passwordless is True"
    told = server.fresh().states["mysql_user.present"](name="x", password_hash="secret!", **server.to)
    assert (told["result"], "secret!" in told["comment"]) == (False, False)


#: grant, database, more -> the line that the server shows.
GRANTS = {
    "some": (("SELECT, INSERT", "shop.*", {}), "GRANT SELECT, INSERT ON `shop`.* TO `frank`@`localhost`"),
    "table": (("update", "shop.goods", {}), "GRANT UPDATE ON `shop`.`goods` TO `frank`@`localhost`"),
    "columns": (
        ("SELECT (price, name), INSERT", "shop.goods", {}),
        "GRANT SELECT (`price`, `name`), INSERT ON `shop`.`goods` TO `frank`@`localhost`",
    ),
    "all": (("ALL", "shop.*", {}), "GRANT ALL PRIVILEGES ON `shop`.* TO `frank`@`localhost`"),
    "everywhere": (("ALL PRIVILEGES", "*.*", {}), "GRANT ALL PRIVILEGES ON *.* TO `frank`@`localhost`"),
    "older names": (("REPLICATION CLIENT, SUPER", "*.*", {}), "BINLOG MONITOR"),
    "underscore": (("SELECT", "my_db.*", {}), "GRANT SELECT ON `my\\_db`.* TO `frank`@`localhost`"),
    "pattern": (("SELECT", "`my_%`.*", {"escape": False}), "GRANT SELECT ON `my_%`.* TO `frank`@`localhost`"),
    "handed on": (
        ("SELECT", "shop.*", {"grant_option": True}),
        "GRANT SELECT ON `shop`.* TO `frank`@`localhost` WITH GRANT OPTION",
    ),
    "awkward": (("SELECT", "a`b c.*", {}), "GRANT SELECT ON `a``b c`.* TO `frank`@`localhost`"),
    "over TLS": (("SELECT", "shop.*", {"ssl_option": [{"SSL": True}]}), "GRANT SELECT ON `shop`.* TO"),
}


@pytest.mark.parametrize("case", GRANTS)
def test_grants(case, server):
    (grant, database, more), line = GRANTS[case]
    server.ask("user_create", "frank", password="x")
    server.ask("db_create", "shop")
    server.ask("query", "shop", "CREATE TABLE goods (name TEXT, price INT)")
    arguments = {"name": "g", "grant": grant, "database": database, "user": "frank", **more}
    assert phases(server, "mysql_grants.present", **arguments) == [
        (None, {"g": "Present"}, "MySQL grant g is set to be created"),
        (True, {"g": "Present"}, f"Grant {grant} on {database} to frank@localhost has been added"),
        (True, {}, f"Grant {grant} on {database} to frank@localhost is already present"),
    ]
    assert any(line in each for each in server.ask("user_grants", "frank")), server.ask("user_grants", "frank")
    arguments.pop("ssl_option", None)
    assert phases(server, "mysql_grants.absent", **arguments) == [
        (None, {"g": "Absent"}, "MySQL grant g is set to be revoked"),
        (True, {"g": "Absent"}, f"Grant {grant} on {database} for frank@localhost has been revoked"),
        (True, {}, f"Grant {grant} on {database} to frank@localhost is not present, so it cannot be revoked"),
    ]


def test_grants_that_make_way(server):
    server.ask("user_create", "frank", password="x")
    arguments = {"name": "g", "database": "shop.*", "user": "frank", "revoke_first": True, **server.to}
    for grant in ("SELECT, INSERT", "UPDATE"):
        told = server.fresh().states["mysql_grants.present"](grant=grant, **arguments)
        assert told["result"] is True, told
    assert server.ask("grant_exists", "SELECT", "shop.*", "frank") is False
    assert server.ask("grant_exists", "UPDATE", "shop.*", "frank") is True


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"grant": None}, "grant is required"),
        ({"grant": "SELECT; DROP"}, "grant: 'SELECT; DROP' is not a list of privileges"),
        ({"database": "shop"}, "database is 'database.table'"),
        ({"database": "a b.*; DROP", "escape": False}, "database: 'a b.*; DROP' can only be written with quotes"),
        ({"connection_conv": {"x": 1}}, "not supported: connection_conv"),
        ({"connection_pass": "a\nb"}, "connection_pass must not contain a line break"),
        ({"connection_default_file": "/none"}, "connection_default_file: there is no file /none"),
    ],
)
def test_wrong_arguments(arguments, says, server):
    given = {"name": "g", "grant": "SELECT", "database": "shop.*", "user": "frank", **server.to, **arguments}
    for state in ("present", "absent"):
        told = server.fresh().states[f"mysql_grants.{state}"](**given)
        assert (told["result"], told["changes"]) == (False, {})
        assert says in told["comment"]


def test_a_server_that_does_not_let_us_in(server):
    wrong = {"connection_user": "root", "connection_pass": "s3cret", "connection_unix_socket": "/none"}
    for state, more in (("mysql_user.present", {"password": "pa55"}), ("mysql_database.present", {})):
        told = server.fresh().states[state](name="x", **more, **wrong)
        assert (told["result"], told["comment"][:16]) == (False, "MySQL Error 2002")
        assert not {"s3cret", "pa55"} & set(str(told).split("'"))


def test_secrets_are_in_no_command_line_and_in_no_error(server):
    server.ask("user_create", "frank", password="pa55word")
    left = [path for path in Path("/tmp").iterdir() if path.name.startswith(".saltern-mysql-")]
    assert not any("pa55word" in each for each in server.client.last)
    with pytest.raises(CommandError) as refused:
        server.ask("user_create", "other", password="pa55word", auth_plugin="none")
    assert "pa55word" not in str(refused.value)
    assert left == []


def test_a_file_of_options(server, tmp_path):
    file = tmp_path / "my.cnf"
    file.write_text(
        f"[client]\nuser=nobody\n[mine]\nuser=root\nsocket={server.to['connection_unix_socket']}\n!include /x\n"
    )
    by_file = {"connection_default_file": str(file), "connection_default_group": "mine"}
    assert "MariaDB" in server.fresh().call("mysql.version", **by_file)
    with pytest.raises(CommandError, match="MySQL Error"):
        server.fresh().call("mysql.version", connection_default_file=str(file))


def test_statements(server):
    server.ask("db_create", "shop")
    server.ask("query", "shop", "CREATE TABLE goods (name TEXT, price INT);")
    told = server.ask("query", "shop", "INSERT INTO goods VALUES ('a<b>&', 1), (NULL, 2)")
    assert told["rows affected"] == 2
    told = server.ask("query", "shop", "SELECT name, price FROM goods ORDER BY price")
    assert (told["rows returned"], told["columns"]) == (2, ["name", "price"])
    assert told["results"] == [["a<b>&", "1"], [None, "2"]]
    assert server.ask("query", "shop", "SELECT 1 AS x FROM goods WHERE price > 5")["results"] == []
    with pytest.raises(CommandError, match="MySQL Error 1146"):
        server.ask("query", "shop", "SELECT * FROM none")


def test_the_state_of_a_statement(server, tmp_path):
    server.opts["grains_file"] = str(tmp_path / "grains")
    call = {"name": "x", "database": "shop", "query": "SELECT name, price FROM goods ORDER BY price"}
    told = phases(server, "mysql_query.run", **call)
    assert [each[0] for each in told] == [None, False, False]
    assert {each[2] for each in told} == {"Database shop is not present"}
    server.ask("db_create", "shop")
    server.ask("query", "shop", "CREATE TABLE goods (name TEXT, price INT)")
    fill = "INSERT INTO goods VALUES ('a;b', 1);\n-- one\nINSERT INTO goods VALUES (NULL, 2);\n"
    server.write("fill.sql", f"{fill}SELECT 7 AS x;\nSELECT 8 AS y;\n")
    filled = phases(server, "mysql_query.run_file", name="x", database="shop", query_file="salt://fill.sql")[:2]
    assert filled[0] == (None, {"query": "Executed"}, "Query would execute, not storing result")
    assert (filled[1][0], filled[1][1]) == (True, {"query": "Executed"})
    assert "[{'x': '7'}, {'y': '8'}]" in filled[1][2]
    server.ask("query", "shop", "DELETE FROM goods WHERE price = 2")
    rows = [{"name": "a;b", "price": "1"}]
    file = tmp_path / "out"
    told = phases(server, "mysql_query.run", **call, output=str(file), overwrite=False)
    assert told[0] == (
        None,
        {"query": f"Executed. Output into {file}"},
        f"Query would execute, storing result in file: {file}",
    )
    assert (told[1][0], told[1][1]) == (True, told[0][1])
    assert told[2] == (True, {}, f"No execution needed. File {file} already set")
    assert file.read_text() == "name:a;b\nprice:1\n" * 2
    for key, where in ((None, "one"), ("k", "two:k")):
        more = {"output": "grain", "grain": where.partition(":")[0], "key": key, "overwrite": False}
        told = phases(server, "mysql_query.run", **call, **more)
        assert told[0][2] == f"Query would execute, storing result in grain: {where}"
        assert told[1][1] == {"query": f"Executed. Output into grain: {where}"}
        # As the next run finds them.
        kept = yaml.safe_load((tmp_path / "grains").read_text())
        server.grains |= kept
        told = phases(server, "mysql_query.run", **call, **more)
        assert told[1] == (True, {}, f"No execution needed. Grain {where} already set")
    assert kept["one"]["results"] == kept["two"]["k"]["results"] == rows * 2


@pytest.mark.parametrize(
    ("state", "arguments", "says"),
    [
        ("run", {"query": "SELECT 1", "output": "grain"}, "needs the grain parameter"),
        ("run", {"query": "SELECT none FROM none", "check_db_exists": False}, "MySQL Error 1146"),
        ("run", {"query": "SELECT 1", "client_flags": ["x"], "check_db_exists": False}, "not supported: client_flags"),
        ("run_file", {}, "query_file is required: the path or salt:// URL of the SQL file"),
        ("run_file", {"query_file": "/none/x.sql"}, "File /none/x.sql does not exist"),
        ("run_file", {"query_file": "salt://none.sql"}, "File salt://none.sql does not exist"),
    ],
)
def test_a_statement_that_cannot_be_sent(state, arguments, says, server):
    told = server.fresh().states[f"mysql_query.{state}"](name="x", database="mysql", **{**server.to, **arguments})
    assert (told["result"], told["changes"]) == (False, {})
    assert says in told["comment"]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n\r\t\\'\"`"), max_size=30))
def test_any_text_comes_back_from_the_server(text, server):
    hexed = server.ask("query", "mysql", f"{mysql.PREAMBLE.rstrip()} SELECT HEX({mysql.literal(text)})")
    assert bytes.fromhex(hexed["results"][0][0] or "").decode() == text


# ------------------------------------------------------------------------------------------------ without a server


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_literal_is_one(text):
    quoted = mysql.literal(text)
    inside, back = quoted[1:-1], {"n": "\n", "r": "\r", "0": "\0", "Z": "\x1a"}
    plain, at = "", 0
    while at < len(inside):
        assert inside[at] not in "'\n\r\0"
        if inside[at] == "\\":
            at += 1
            plain += back.get(inside[at], inside[at])
        else:
            plain += inside[at]
        at += 1
    assert (quoted[0], quoted[-1], plain) == ("'", "'", text)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_an_identifier_is_one_or_refused(text):
    if any(ord(each) < 32 for each in text):
        with pytest.raises(InvocationError, match="is not a valid name"):
            mysql.identifier(text)
    else:
        assert mysql.identifier(text)[1:-1].replace("``", "").count("`") == 0
        assert mysql.identifier(text)[1:-1].replace("``", "`") == text


NAMES = st.text(string.ascii_letters + "_`' .%", min_size=1, max_size=8).filter(lambda name: name.strip("`") == name)


@given(
    database=NAMES.filter(lambda name: "." not in name), table=NAMES.filter(lambda name: "." not in name) | st.just("*")
)
def test_a_grant_is_read_as_it_was_written(database, table):
    name, own, written = mysql.granted_object(f"{database}.{table}")
    line = f"GRANT SELECT (`a b`), INSERT ON {written} TO `u`@`h` REQUIRE SSL WITH GRANT OPTION"
    read = mysql.parsed(line)
    assert read == mysql.Grant(frozenset({("SELECT", "a b"), ("INSERT", "")}), name, own, grant_option=True)


@pytest.mark.parametrize(
    "line",
    [
        "GRANT `role` TO `u`@`h`",
        "GRANT PROXY ON ''@'%' TO 'root'@'localhost' WITH GRANT OPTION",
        "GRANT EXECUTE ON FUNCTION `d`.`f` TO `u`@`h`",
        "SET DEFAULT ROLE x",
    ],
)
def test_lines_that_grant_nothing_on_tables(line):
    assert mysql.parsed(line) is None


def test_a_host_without_a_client(plain):
    with pytest.raises(NotAvailable, match="the host has no client program of MySQL"):
        plain.state("mysql_user.present", name="x", password="y")


def test_the_mounted_hosts_client_is_asked(plain):
    """Its file of options lies in the host, for nobody else to read, and is gone afterwards."""
    seen = {}

    class Mounted(Host):
        def which(self, program):
            return "/usr/bin/mysql" if program == "mysql" else None

        def run(self, cmd, **options):
            path = Path(plain.root, cmd[1].partition("=")[2].lstrip("/"))
            seen.update(cmd=cmd, mode=path.stat().st_mode & 0o777, text=path.read_text(), asked=options["stdin"])
            return CommandResult(0, "", "", 1)

    (plain.root / "tmp").mkdir()
    ctx = plain.context(host=Mounted(plain.root))
    ctx.call("mysql.db_list", connection_pass='a"b\\c #', connection_host="db")
    assert seen["cmd"][0] == "mysql"
    assert (seen["mode"], seen["asked"]) == (0o600, f"{mysql.PREAMBLE}SHOW DATABASES;\n")
    assert seen["text"] == '[client]\nhost="db"\npassword="a\\"b\\\\c #"\n'
    assert list((plain.root / "tmp").iterdir()) == []
