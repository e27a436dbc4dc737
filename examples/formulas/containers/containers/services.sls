{%- from "containers/map.jinja" import containers with context %}

include:
  - .images

{%- for name, service in containers.services | dictsort %}
containers-service-{{ name }}-environment:
  file.keyvalue:
    - name: /etc/default/container-{{ name }}
    - key_values: {{ service.get("environment", {}) | json }}
    - separator: '='
    - append_if_not_found: true
    - create_if_missing: true

containers-service-{{ name }}-unit:
  file.managed:
    - name: /etc/systemd/system/container-{{ name }}.service
    - source: salt://containers/files/container.service.jinja
    - template: jinja
    - context:
        name: {{ name }}
        service: {{ service | json }}

containers-service-{{ name }}:
  service.running:
    - name: container-{{ name }}
    - enable: true
    - require:
      - cmd: containers-image-{{ service.image }}
    - watch:
      - file: containers-service-{{ name }}-unit
      - file: containers-service-{{ name }}-environment
{%- endfor %}
