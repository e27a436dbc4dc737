{%- set tplroot = tpldir.split("/")[0] %}
{%- from tplroot ~ "/map.jinja" import webserver with context %}

webserver-service-clean-service:
  service.dead:
    - name: {{ webserver.service.name }}
    - enable: false
