include:
  - .run
