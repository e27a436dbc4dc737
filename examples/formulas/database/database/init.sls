include:
  - database.server
  - database.manage
