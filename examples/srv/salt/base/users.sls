# The people of pillar `users`, each with a group of that name.
{% for name, user in salt['pillar.get']('users', {}) | dictsort %}
group-{{ name }}:
  group.present:
    - name: {{ name }}
    - gid: {{ user['uid'] }}

user-{{ name }}:
  user.present:
    - name: {{ name }}
    - uid: {{ user['uid'] }}
    - gid: {{ user['uid'] }}
    - fullname: {{ user['fullname'] }}
    - shell: {{ user.get('shell', '/bin/bash') }}
    - home: /home/{{ name }}
    - createhome: True
    - require:
      - group: group-{{ name }}
{% endfor %}
