{%- from "openssh/map.jinja" import openssh with context %}

openssh-group:
  group.present:
    - name: {{ openssh.group }}
    - system: true

{%- for name, settings in openssh.users | dictsort %}
openssh-user-{{ name }}:
  user.present:
    - name: {{ name }}
    - shell: /bin/bash
    - optional_groups:
      - {{ openssh.group }}
      - no-such-group
    - remove_groups: false
    - require:
      - group: openssh-group

{%- for key in settings.get("keys", []) %}
openssh-user-{{ name }}-key-{{ loop.index }}:
  ssh_auth.present:
    - user: {{ name }}
    {%- for argument, value in key | dictsort %}
    - {{ argument }}: {{ value | json }}
    {%- endfor %}
    - require:
      - user: openssh-user-{{ name }}
{%- endfor %}

{%- for key in settings.get("absent_keys", []) %}
openssh-user-{{ name }}-absent-{{ loop.index }}:
  ssh_auth.absent:
    - user: {{ name }}
    - name: {{ key.name }}
    - enc: {{ key.enc }}
    - require:
      - user: openssh-user-{{ name }}
{%- endfor %}
{%- endfor %}
