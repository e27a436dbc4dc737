{%- from "containers/map.jinja" import containers with context %}

containers-config:
  file.serialize:
    - name: /etc/docker/daemon.json
    - dataset: {{ containers.config | json }}
    - serializer: json
    - makedirs: true
    - mode: '0644'

containers-engine:
  pkg.installed:
    - pkgs: {{ containers.packages | json }}
    - require:
      - file: containers-config
  service.running:
    - name: {{ containers.service }}
    - enable: true
    - require:
      - pkg: containers-engine
    - watch:
      - file: containers-config

{%- for name in containers.users %}
containers-user-{{ name }}:
  user.present:
    - name: {{ name }}
    - groups: [docker]
    - remove_groups: false
    - require:
      - pkg: containers-engine
{%- endfor %}
