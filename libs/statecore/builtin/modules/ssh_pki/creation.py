"""Functions of ``ssh_pki`` that create and encode keys and certificates."""

from __future__ import annotations

from statecore.builtin.modules.ssh_pki import signers
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.system.certificates.arguments import passphrase as password
from statecore.system.certificates.host_files import write_file
from statecore.system.ssh_certificates import desired, keys, policies


def create_certificate(
    ctx: Context,
    ca_server: str | None = None,
    signing_policy: str | None = None,
    path: str | None = None,
    overwrite: bool = False,
    raw: bool = False,
    **kwargs: object,
) -> object:
    """Create a certificate of OpenSSH, signed on this minion or by the minion ``ca_server``.

    Return the certificate, or write it to ``path`` and return a sentence. An existing file is an error without
    ``overwrite``.

    cert_type
        user or host
    signing_private_key, signing_private_key_passphrase
        the signer
    private_key, private_key_passphrase, public_key
        the key to certify: the first one given
    valid_principals, all_principals
        names of users or hosts; or True for all
    serial_number, key_id
        the number is random by default
    not_before, not_after, ttl
        dates are ``%Y-%m-%d %H:%M:%S`` in UTC; ttl is a duration such as ``12h`` or ``30d``, by default 24 hours for
        users and 30 days for hosts
    critical_options, extensions
        maps of name to value; True for those without a value
    signing_policy
        the name of a policy of the signer (``ssh_signing_policies``), whose values override the arguments
    copypath
        a directory for a copy, named by the serial number

    CLI Example:

        salt '*' ssh_pki.create_certificate private_key=/root/.ssh/id_rsa signing_private_key=/etc/pki/ssh/ca.key cert_type=user
    """
    given = {name: value for name, value in kwargs.items() if not name.startswith("_") and value is not None}
    _need_free(ctx, path, overwrite)
    if ca_server:
        certificate = signers.signed_by(ctx, ca_server, signing_policy, given)
    else:
        policy = signers.policy_of(ctx, signing_policy)
        copies = policy.get("copypath", given.pop("copypath", None))
        order = desired.certificate(signers.reader(ctx), policies.merged(policy, given))
        if order.signing_key is None:
            raise CommandError("there is no key to sign with")
        certificate = order.desired.signed(order.signing_key)
        signers.write_copy(ctx, certificate, copies)
    data = certificate.public_bytes()
    if path is None:
        return data if raw else data.decode()
    write_file(ctx, path, data)
    return f"Certificate written to {path}"


def create_private_key(
    ctx: Context,
    algo: str = "rsa",
    keysize: int | None = None,
    passphrase: str | None = None,
    path: str | None = None,
    pubkey_suffix: str | None = ".pub",
    overwrite: bool = False,
    raw: bool = False,
) -> object:
    """Create a private key: rsa (2048, 3072, 4096 bits; default 3072), ec (256, 384, 521 bits; default 256) or ed25519.

    Return a map of ``private_key`` and ``public_key``; with ``raw`` the private key as bytes. With ``path``, write the
    private key there (mode 0600) and the public key beside it with ``pubkey_suffix`` (False: do not), and return a
    sentence.

    CLI Example:

        salt '*' ssh_pki.create_private_key algo=ec keysize=384
    """
    _need_free(ctx, path, overwrite)
    key = keys.make_key(algo, keysize)
    private = keys.encoded_private(key, password("passphrase", passphrase))
    public = keys.encoded_public(key.public_key())
    if path is None:
        return private if raw else {"private_key": private.decode(), "public_key": public}
    write_file(ctx, path, private, mode=0o600)
    if pubkey_suffix:
        write_file(ctx, f"{path}{pubkey_suffix}", public.encode())
    return f"Private key written to {path}"


def encode_private_key(
    ctx: Context,
    private_key: object,
    private_key_passphrase: str | None = None,
    passphrase: str | None = None,
    raw: bool = False,
) -> object:
    """Return a private key as OpenSSH writes it, encrypted with ``passphrase`` if one is given; with ``raw`` as bytes.
    ``private_key_passphrase``: the present passphrase.

    CLI Example:

        salt '*' ssh_pki.encode_private_key /root/.ssh/id_rsa passphrase=sesame
    """
    locked = password("private_key_passphrase", private_key_passphrase)
    key = keys.private_key(signers.reader(ctx)(private_key), locked)
    data = keys.encoded_private(key, password("passphrase", passphrase))
    return data if raw else data.decode()


def _need_free(ctx: Context, path: str | None, overwrite: bool) -> None:
    if path and not overwrite and ctx.host.path(path).is_file():
        raise CommandError(f"The file at {path} exists and overwrite was set to false")
