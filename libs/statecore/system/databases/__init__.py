"""SQL for database servers: quoting, statements, and parsing of results. Callers run the servers' client programs.

``mysql``                literals, names and grants of MySQL and MariaDB
``postgres``             literals, names and password hashes of PostgreSQL
``postgres_privileges``  privileges on PostgreSQL objects
``roles``                plans for PostgreSQL users and groups
"""
