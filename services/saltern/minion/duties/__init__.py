"""Work that a minion does without a publication: schedule, beacons, mine; and the lock that decides which process does it."""
