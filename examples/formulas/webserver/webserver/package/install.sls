{%- set tplroot = tpldir.split("/")[0] %}
{%- from tplroot ~ "/map.jinja" import webserver with context %}

webserver-package-install-pkgs:
  pkg.{{ webserver.package.ensure }}:
    {%- if webserver.package.version %}
    - pkgs:
      {%- for name in webserver.package.names %}
      - {{ name }}: {{ webserver.package.version | yaml_dquote }}
      {%- endfor %}
    {%- else %}
    - names: {{ webserver.package.names | json }}
    {%- endif %}
