{%- from "accounts/map.jinja" import accounts, users with context %}
{%- set wanted = [] %}
{%- for user in users.values() %}{% do wanted.extend(user.groups) %}{% endfor %}

{%- for name in (wanted + accounts.groups | list) | unique | sort %}
{%-   set group = accounts.groups.get(name) or {} %}
accounts-group-{{ name }}:
  group.present:
    - name: {{ name }}
    {%- for key in ("gid", "system") if key in group %}
    - {{ key }}: {{ group[key] }}
    {%- endfor %}
{%- endfor %}

{%- for name in accounts.absent | sort %}
accounts-user-{{ name }}-absent:
  user.absent:
    - name: {{ name }}
    - force: true
    {%- if wanted %}
    - require_in:
      {%- for group in wanted | unique | sort %}
      - group: accounts-group-{{ group }}
      {%- endfor %}
    {%- endif %}
{%- endfor %}
