"""Run by the oracle's Python: what real Salt makes of the rows of queries to an SQLite database.

Standard input: JSON [path of the database, [[args, kwargs], ...]]. Standard output: a JSON list with the data of each.
"""

import contextlib
import json
import sqlite3
import sys

from salt.pillar.sql_base import SqlBaseExtPillar


class Pillar(SqlBaseExtPillar):
    """The part that Salt's pillars of databases share, over SQLite."""

    database = ""

    @classmethod
    def _db_name(cls):
        return "SQLite"

    @contextlib.contextmanager
    def _get_cursor(self):
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            yield connection.cursor()


def main():
    Pillar.database, cases = json.load(sys.stdin)
    json.dump([Pillar().fetch("web1", {}, *args, **kwargs) for args, kwargs in cases], sys.stdout)


main()
