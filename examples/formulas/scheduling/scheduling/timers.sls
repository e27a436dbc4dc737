{%- from "scheduling/map.jinja" import scheduling with context %}

{%- for name, timer in scheduling.get("timers", {}) | dictsort %}
{%-   for kind in ("service", "timer") %}
scheduling-{{ kind }}-{{ name }}:
  file.managed:
    - name: /etc/systemd/system/{{ name }}.{{ kind }}
    - source: salt://scheduling/files/unit.{{ kind }}.jinja
    - template: jinja
    - context:
        name: {{ name }}
        timer: {{ timer | json }}
{%-   endfor %}

scheduling-timer-{{ name }}-reload:
  module.run:
    - service.systemctl_reload: []
    - onchanges:
      - file: scheduling-*-{{ name }}

scheduling-timer-{{ name }}-running:
  service.running:
    - name: {{ name }}.timer
    - enable: true
    - require:
      - module: scheduling-timer-{{ name }}-reload
    - watch:
      - file: scheduling-timer-{{ name }}
{%- else %}
scheduling-timers-none:
  test.nop: []
{%- endfor %}
