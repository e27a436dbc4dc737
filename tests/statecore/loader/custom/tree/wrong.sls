#!yaml
stuck:
  door.failing: []
