front:
  door.open:
    - wide: true
back:
  door.closed:
    - watch:
      - door: front
several:
  door.several:
    - doors: [x, y]
json:
  door.serialised: []
