"""X.509 keys, certificates, signing requests and revocation lists, with the names that Salt's ``x509`` module uses.

The functions take and return values; callers read files and call other minions. Importing a module of this package
loads the library ``cryptography``. Only the modules ``x509`` and ``ssh_pki`` import
it, on their first use.

``names``         distinguished and general names, object identifiers, serial numbers
``extensions``    extensions from Salt's arguments
``descriptions``  extensions and names as ``x509.read_*`` returns them
``loading``       parses bytes in any encoding
``desired``       a desired certificate, request or list before it is signed; its differences from the existing one
``issuing``       makes keys, signs, encodes
``arguments``     checks the arguments of a call and loads its keys and certificates
``policies``      merges a signing policy with a caller's arguments
``peers``         signing policies of a minion, and requests to a minion that signs for others
``references``    reads a key or certificate that an argument names
``host_files``    writes a key or certificate to a file of the host
``state_file``    the file of a state: its content, owner and mode, and how it is written
"""
