"""The operators' commands: salt, salt-key, salt-run, salt-cp, eventlisten, and the completion of shells."""
