"""A minion's two ZeroMQ sockets: requests (``req``) and publications (``sub``)."""
