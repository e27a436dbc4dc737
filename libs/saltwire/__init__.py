"""Salt's wire protocol, without I/O: bytes and values in, bytes and values out (``zmq`` holds a minion's two sockets).

Read in this order: ``pack`` (msgpack), ``keys`` and ``crypticle`` (cryptography), ``envelope`` (requests), ``handshake``
(sign-in), ``publication`` (jobs), ``pillar_transfer``, ``file_transfer``, ``tags``, ``jid``.
"""
