"""What a minion does without being asked: schedule, beacons, mine; and which of its processes leads."""
