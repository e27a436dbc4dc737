{%- from "accounts/map.jinja" import accounts with context %}

include:
  - .users

accounts-sudo-directory:
  file.directory:
    - name: {{ accounts.sudoers }}
    - mode: '0750'

{%- for name, rules in accounts.sudo.items() %}
accounts-sudo-{{ name }}:
  file.managed:
    - name: {{ accounts.sudoers }}/{{ "%02d" | format(loop.index) }}-{{ name }}
    - mode: '0440'
    {%- if salt["cmd.has_exec"]("visudo") %}
    - check_cmd: visudo -cf
    {%- endif %}
    - contents:
      {%- for rule in rules %}
      - {{ (name ~ " " ~ rule) | yaml_dquote }}
      {%- endfor %}
    - require:
      - file: accounts-sudo-directory
    - failhard: false
    - listen_in:
      - test: accounts-sudo-checked
{%- endfor %}

accounts-sudo-checked:
  test.succeed_without_changes:
    - order: last

extend:
  {%- for name in accounts.users if name in accounts.sudo %}
  accounts-user-{{ name }}:
    user:
      - require_in:
        - file: accounts-sudo-{{ name }}
  {%- else %} {}
  {%- endfor %}
