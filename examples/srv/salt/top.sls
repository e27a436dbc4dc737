# Who gets what. Every minion gets `base`. The grain `userland` says what a managed host is: a whole Debian, where packages
# and services are at home, or a plain directory tree, which holds files and nothing else.
base:
  '*':
    - base
  'userland:debian':
    - match: grain
    - web
  'userland:none':
    - match: grain
    - landing
