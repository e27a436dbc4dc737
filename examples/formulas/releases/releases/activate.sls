{%- from tpldir ~ "/map.jinja" import releases, apps with context %}

include:
  - releases.deploy

{%- for app, settings in apps.items() | sort %}
{{ app }}-stop:
  test.succeed_with_changes:
    - name: stop {{ app }}
    - prereq:
      - file: {{ app }}-current

{{ app }}-current:
  file.symlink:
    - name: {{ releases.root }}/{{ app }}/current
    - target: {{ releases.root }}/{{ app }}/{{ settings.current }}
    - require:
      - sls: releases.deploy

{{ app }}-start:
  cmd.run:
    - name: {{ releases.root }}/{{ app }}/current/run
    - onchanges:
      - file: {{ app }}-current

{%-   for version in settings.gone %}
{{ app }}-{{ version }}-absent:
  file.absent:
    - name: {{ releases.root }}/{{ app }}/{{ version }}
    - require:
      - cmd: {{ app }}-start
{%-   endfor %}
{%- endfor %}
