"""Messages between the minion's own processes: framed socket pairs, the control socket, and all keys of messages."""
