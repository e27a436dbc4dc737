{%- from "database/map.jinja" import database with context %}

database-package:
  pkg.installed:
    - name: {{ database.package }}

database-include-directory:
  file.directory:
    - name: {{ database.include_dir }}
    - user: {{ database.superuser }}
    - group: {{ database.superuser }}
    - mode: '0755'
    - require:
      - pkg: database-package

database-config:
  file.managed:
    - name: {{ database.include_dir }}/salt.conf
    - source: salt://database/files/salt.conf.jinja
    - template: jinja
    - user: {{ database.superuser }}
    - group: {{ database.superuser }}
    - mode: '0640'
    - defaults:
        settings: {{ database.config | json }}
    - require:
      - file: database-include-directory
    - watch_in:
      - service: database-service

database-access:
  file.blockreplace:
    - name: {{ database.config_dir }}/pg_hba.conf
    - marker_start: '# managed by salt: start'
    - marker_end: '# managed by salt: end'
    - prepend_if_not_found: true
    - backup: false
    - content: |
        {%- for row in database.access %}
        {{ "%-7s %-10s %-10s %-18s %s" | format(*row) }}
        {%- else %}
        # none
        {%- endfor %}
    - require:
      - pkg: database-package

database-service:
  service.running:
    - name: {{ database.service }}
    - enable: true
    - require:
      - pkg: database-package

database-reload:
  cmd.run:
    - name: psql -qc 'select pg_reload_conf()'
    - runas: {{ database.superuser }}
    - cwd: /
    - onchanges:
      - file: database-access
    - require:
      - service: database-service
