"""Messages between the minion's own processes: framed socket pairs and the control socket."""
