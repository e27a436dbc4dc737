"""The role mworker: answers the requests of minions and operators."""
