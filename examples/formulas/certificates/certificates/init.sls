include:
  - certificates.authority
  - certificates.servers
  - certificates.trusted
