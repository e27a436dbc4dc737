{%- set tplroot = tpldir.split("/")[0] %}
{%- set sls_config_clean = tplroot ~ ".config.clean" %}
{%- from tplroot ~ "/map.jinja" import webserver with context %}

include:
  - {{ sls_config_clean }}

webserver-package-clean-pkgs:
  pkg.removed:
    - pkgs: {{ webserver.package.names | json }}
    - require:
      - sls: {{ sls_config_clean }}
