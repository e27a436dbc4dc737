"""Keys, certificates, requests and revocation lists (X.509), as Salt's ``x509`` names their parts.

Values in, values out: what lies in files or on other machines is read by who asks. Whoever imports a file of this package loads
``cryptography``; nothing but the module and the states ``x509`` does, when they are first used.

``names``       distinguished and general names, object identifiers, serial numbers
``extensions``  extensions from Salt's arguments
``shown``       extensions and names as ``x509.read_*`` shows them
``loading``     from bytes in any encoding
``wanted``      a certificate, request or list that is wanted, before anybody signs it; how it differs from the one there is
``issuing``     keys made, wishes signed, everything encoded
``policies``    signing policies over a caller's arguments
"""
