# Everyone has the defaults; what a minion's own file says comes on top.
base:
  '*':
    - defaults
  'web1':
    - web1
  'web2':
    - web2
