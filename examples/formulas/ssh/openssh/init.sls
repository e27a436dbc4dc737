include:
  - openssh.server
  - openssh.users
  - openssh.known_hosts
