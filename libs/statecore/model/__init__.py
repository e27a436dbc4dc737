"""Types, errors, interfaces of services (``ports``) and pure functions on values that all packages of statecore share."""
