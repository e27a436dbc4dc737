{%- set tplroot = tpldir.split("/")[0] %}
{%- set sls_config = tplroot ~ ".config.file" %}
{%- from tplroot ~ "/map.jinja" import webserver with context %}
{%- from tplroot ~ "/macros.jinja" import site_file with context %}

include:
  - {{ sls_config }}

{%- for name, site in webserver.sites | dictsort %}
{%-   set enabled = site.get("enabled", true) %}
{%-   set path = webserver.config.sites ~ "/" ~ name ~ ".conf" %}

webserver-site-{{ name }}-root:
  file.directory:
    - name: {{ site.get("root", "/srv/www/" ~ name) }}
    - user: {{ webserver.identity.user }}
    - group: {{ webserver.identity.group }}
    - makedirs: true

webserver-site-{{ name }}-file:
  file.{{ "managed" if enabled or webserver.config.enabled else "absent" }}:
    - name: {{ path }}
    {%- if enabled or webserver.config.enabled %}
    {{- site_file(name, "salt://" ~ tplroot ~ "/files/default/site.jinja") }}
    {%- endif %}
    - require:
      - sls: {{ sls_config }}
      - file: webserver-site-{{ name }}-root

{%-   if webserver.config.enabled %}
webserver-site-{{ name }}-link:
  file.{{ "symlink" if enabled else "absent" }}:
    - name: {{ webserver.config.enabled }}/{{ name }}.conf
    {%- if enabled %}
    - target: {{ path }}
    {%- endif %}
    - require:
      - file: {{ path }}
{%-   endif %}
{%-   for alias in site.get("aliases", []) %}
webserver-site-{{ name }}-alias-{{ loop.index }}:
  test.nop:
    - name: {{ alias }}
    - onchanges:
      - file: webserver-site-{{ name }}-file
{%-   endfor %}
{%- endfor %}

{%- if webserver.config.purge_default and webserver.config.enabled %}
webserver-site-default:
  file.absent:
    - name: {{ webserver.config.enabled }}/default
    - require:
      - sls: {{ sls_config }}
{%- endif %}
