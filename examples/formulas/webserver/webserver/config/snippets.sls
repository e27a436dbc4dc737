{%- set tplroot = tpldir.split("/")[0] %}
{%- from tplroot ~ "/map.jinja" import webserver with context %}
{%- from tplroot ~ "/macros.jinja" import directives with context %}

include:
  - .file

{%- for name, settings in webserver.snippets | dictsort %}
webserver-config-snippet-{{ name }}:
  file.managed:
    - name: {{ webserver.config.dir }}/snippets/{{ name }}.conf
    - makedirs: true
    - contents: |
        {{ directives(settings) | trim | indent(8) }}
    - require:
      - id: webserver-config-file-directories
    - require_in:
      - file: webserver-config-file-main
{%- else %}
webserver-config-snippets-none:
  test.nop: []
{%- endfor %}
