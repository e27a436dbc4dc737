{%- from "accounts/map.jinja" import accounts, users with context %}
{%- from "accounts/user.jinja" import home_files, keys with context %}

include:
  - accounts.groups

{%- for name, user in users | dictsort %}
accounts-user-{{ name }}:
  user.present:
    - name: {{ name }}
    - shell: {{ user.shell }}
    - home: {{ user.home }}
    {%- if user.uid is defined %}
    - uid: {{ user.uid }}
    {%- endif %}
    {%- if user.groups %}
    - groups: {{ user.groups | unique | list | json }}
    - require:
      {%- for group in user.groups | unique %}
      - group: accounts-group-{{ group }}
      {%- endfor %}
    {%- endif %}
    - require_any:
      - sls: accounts.groups

accounts-user-{{ name }}-home:
  file.directory:
    - name: {{ user.home }}
    - user: {{ name }}
    - mode: '0750'
    - onchanges:
      - user: accounts-user-{{ name }}
{{ home_files(name, user) }}
{%- if user["keys"] %}
{{ keys(name, user) }}
{%- endif %}
{% endfor %}
