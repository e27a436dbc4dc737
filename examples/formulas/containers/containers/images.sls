{%- from "containers/map.jinja" import containers with context %}

include:
  - .engine

{#- Images are made of files of the host itself: no registry is needed. #}
{%- for name, image in containers.images | dictsort %}
containers-image-{{ name }}-packages:
  pkg.installed:
    - name: busybox-static
{%-   for file in image.files %}
containers-image-{{ name }}{{ file }}:
  file.copy:
    - name: /srv/images/{{ name }}{{ file }}
    - source: {{ file }}
    - makedirs: true
    - preserve: true
    - require:
      - pkg: containers-image-{{ name }}-packages
    - onchanges_in:
      - cmd: containers-image-{{ name }}
{%-   endfor %}

containers-image-{{ name }}:
  cmd.run:
    - name: >-
        tar -C /srv/images/{{ name }} -c . | docker import
        --change 'CMD {{ image.command | json }}' - {{ name }}:latest
    - require:
      - service: containers-engine
{%- endfor %}
