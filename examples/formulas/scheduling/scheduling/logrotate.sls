{%- from "scheduling/map.jinja" import scheduling with context %}

scheduling-logrotate:
  pkg.installed:
    - name: logrotate

{%- for name, rotation in scheduling.get("logrotate", {}) | dictsort %}
scheduling-logrotate-{{ name }}:
  file.managed:
    - name: /etc/logrotate.d/{{ name }}
    - contents: |
        {{ rotation.path }} {
          rotate {{ rotation.rotate }}
          {%- for option in rotation.options | sort %}
          {{ option }}
          {%- endfor %}
        }
    - require:
      - pkg: scheduling-logrotate
{%- endfor %}
