{%- set tplroot = tpldir.split("/")[0] %}
{%- set sls_service_clean = tplroot ~ ".service.clean" %}
{%- from tplroot ~ "/map.jinja" import webserver with context %}

include:
  - {{ sls_service_clean }}

webserver-config-clean-files:
  file.absent:
    - names:
      - {{ webserver.config.dir }}/{{ webserver.config.file }}
      {%- for name in webserver.snippets | sort %}
      - {{ webserver.config.dir }}/snippets/{{ name }}.conf
      {%- endfor %}
    - require:
      - sls: {{ sls_service_clean }}
