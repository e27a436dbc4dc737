{%- set tplroot = tpldir.split("/")[0] %}
{%- set sls_package = tplroot ~ ".package.install" %}
{%- from tplroot ~ "/map.jinja" import webserver with context %}
{%- from tplroot ~ "/libtofs.jinja" import files_switch with context %}
{%- from tplroot ~ "/macros.jinja" import directives with context %}

include:
  - {{ sls_package }}

webserver-config-file-directories:
  file.directory:
    - names:
      - {{ webserver.config.dir }}
      - {{ webserver.config.sites }}:
        - mode: '0750'
      {%- if webserver.config.enabled %}
      - {{ webserver.config.enabled }}
      {%- endif %}
    - user: root
    - group: {{ webserver.identity.group }}
    - mode: '0755'
    - makedirs: true
    - require:
      - sls: {{ sls_package }}

webserver-config-file-main:
  file.managed:
    - name: {{ webserver.config.dir }}/{{ webserver.config.file }}
    - source:
      {{ files_switch([webserver.config.file ~ ".jinja", "main.jinja"], "webserver-config-file-main", 6) }}
    - template: jinja
    - user: root
    - group: {{ webserver.identity.group }}
    - mode: {{ webserver.config.mode | yaml_squote }}
    - check_cmd: {{ webserver.config.check }}
    - context:
        options: {{ webserver.config.options | json }}
        rendered: |
          {{ directives(webserver.config.options) | indent(10) }}
    - require:
      - file: webserver-config-file-directories
