"""Types, errors, ports and pure functions on values that every room of statecore shares."""
