"""What a minion does without a request: schedule, beacons, mine; and which of its processes does it."""
