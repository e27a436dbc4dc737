"""Types, errors, ports and pure functions on values that all packages of statecore share."""
