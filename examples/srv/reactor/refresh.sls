# A host asks to be put right: salt-call event.send site/refresh
put-right:
  local.state.apply:
    - tgt: {{ data['id'] | json }}
