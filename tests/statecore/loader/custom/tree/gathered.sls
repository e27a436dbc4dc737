one:
  gathering.gathered: []
two:
  gathering.gathered: []
