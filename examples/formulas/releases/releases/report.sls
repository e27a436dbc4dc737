{%- from tpldir ~ "/map.jinja" import releases, apps with context %}

include:
  - .activate

releases-report:
  file.managed:
    - name: {{ releases.root }}/report.txt
    - contents:
      - {{ apps | length }} applications
      {%- for app in apps | sort %}
      - {{ app }}
      {%- endfor %}
    - order: last
    {%- if apps %}
    - watch:
      - cmd: '*-start'
    {%- endif %}

releases-report-failed:
  test.nop:
    - onfail_any:
      - sls: releases.deploy
      - file: releases-report

{%- if apps %}
extend:
  {%- for app in apps | sort %}
  {{ app }}-start:
    cmd:
      - env:
        - APP: {{ app }}
      - require:
        - id: releases-root
  {%- endfor %}
{%- endif %}
