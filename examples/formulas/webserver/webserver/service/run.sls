{%- set tplroot = tpldir.split("/")[0] %}
{%- set sls_config = tplroot ~ ".config.file" %}
{%- set sls_sites = tplroot ~ ".sites" %}
{%- from tplroot ~ "/map.jinja" import webserver with context %}

include:
  - {{ sls_config }}
  - {{ sls_sites }}

webserver-service-run-service:
  service.{{ webserver.service.ensure }}:
    - name: {{ webserver.service.name }}
    - enable: {{ webserver.service.enable }}
    {%- if webserver.service.ensure == "running" %}
    - reload: true
    - watch:
      - sls: {{ sls_config }}
      {%- if webserver.sites %}
      - file: webserver-site-*
      {%- endif %}
    {%- endif %}
    - onlyif:
      - fun: test.true

{#- Packages are installed while nobody is served. #}
extend:
  webserver-config-file-main:
    file:
      - watch_in:
        - service: webserver-service-run-service
      - backup: minion
