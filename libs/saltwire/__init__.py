"""Salt's wire protocol without I/O: functions turn values into message bytes and back. Only ``saltwire.zmq`` opens
sockets.

Read in this order: ``pack`` (msgpack), ``keys`` and ``crypticle`` (cryptography), ``envelope`` (requests),
``handshake`` (sign-in), ``publication`` (jobs), ``pillar_transfer``, ``file_transfer``, ``tags`` (event tags), ``jid``
(job ids). ``messages`` has the types of all message maps. The protocol itself is described in docs/protocol.md.
"""
