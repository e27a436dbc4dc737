base:
  a1:
    - match: room
    - doors
  nowhere:
    - match: room
    - wrong
