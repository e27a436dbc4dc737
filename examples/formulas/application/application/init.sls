{%- from "application/map.jinja" import application, code, venv with context %}

application-packages:
  pkg.installed:
    - pkgs: {{ application.packages | json }}

application-group:
  group.present:
    - name: {{ application.user }}
    - system: true

application-user:
  user.present:
    - name: {{ application.user }}
    - system: true
    - gid: {{ application.user }}
    - home: {{ application.root }}
    - shell: /usr/sbin/nologin
    - fullname: Runs {{ application.name }}
    - require:
      - group: application-group

application-safe-directory:
  git.config_set:
    - name: safe.directory
    - multivar:
      - {{ application.repository | replace("file://", "") }}
      - {{ code }}
    - global: true
    - require:
      - pkg: application-packages

application-code-directory:
  file.directory:
    - name: {{ code }}
    - user: {{ application.user }}
    - group: {{ application.user }}
    - require:
      - user: application-user

application-code:
  git.latest:
    - name: {{ application.repository }}
    - target: {{ code }}
    - rev: {{ application.branch }}
    - branch: {{ application.branch }}
    - force_reset: true
    - require:
      - git: application-safe-directory
      - file: application-code-directory

application-venv:
  cmd.run:
    - name: python3 -m venv --without-pip {{ venv }}
    - creates: {{ venv }}/bin/python3
    - require:
      - pkg: application-packages
      - user: application-user

application-settings:
  file.serialize:
    - name: {{ application.root }}/settings.json
    - dataset_pillar: application:settings
    - serializer: json
    - serializer_opts:
      - indent: 2
      - sort_keys: true
    - user: {{ application.user }}
    - mode: '0640'
    - require:
      - user: application-user

application-current:
  file.symlink:
    - name: {{ application.root }}/current
    - target: {{ code }}
    - require:
      - git: application-code

application-unit:
  file.managed:
    - name: /etc/systemd/system/{{ application.name }}.service
    - source: salt://application/files/unit.jinja
    - template: jinja
    - context:
        application: {{ application | json }}
        code: {{ code }}
        venv: {{ venv }}

application-migrated:
  cmd.run:
    - name: {{ venv }}/bin/python3 migrate.py
    - cwd: {{ code }}
    - runas: {{ application.user }}
    - env:
      - STATE: {{ application.root }}/schema
    - stateful: true
    - onchanges:
      - git: application-code
    - require:
      - cmd: application-venv

application-service:
  service.running:
    - name: {{ application.name }}
    - enable: true
    - require:
      - cmd: application-migrated
    - watch:
      - git: application-code
      - file: application-settings
      - file: application-unit
