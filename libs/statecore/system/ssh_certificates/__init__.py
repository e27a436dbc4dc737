"""Keys and certificates of OpenSSH, with the names that Salt's ``ssh_pki`` module uses.

The functions take and return values; callers read files and call other minions. Importing a module of this package
loads the library ``cryptography``. Only the execution and state modules ``ssh_pki`` import it, on their first use.

``keys``          parses and encodes keys and certificates
``desired``       a desired certificate before it is signed; its differences from the existing one
``policies``      merges a signing policy with a caller's arguments
``descriptions``  a certificate as ``ssh_pki.read_certificate`` returns it
"""
