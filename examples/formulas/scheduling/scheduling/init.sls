{%- from "scheduling/map.jinja" import scheduling with context %}

include:
  - .timers
  - .logrotate

scheduling-cron:
  pkg.installed:
    - name: {{ scheduling.package }}
  service.running:
    - name: {{ scheduling.service }}
    - enable: true
    - require:
      - pkg: scheduling-cron

{%- for name in scheduling.get("users", []) %}
scheduling-user-{{ name }}:
  user.present:
    - name: {{ name }}
    - system: true
    - shell: /usr/sbin/nologin
    - home: /var/lib/{{ name }}
    - createhome: true
{%- endfor %}

{%- for name, value in scheduling.get("environment", {}) | dictsort %}
scheduling-environment-{{ name }}:
  cron.env_present:
    - name: {{ name }}
    - value: {{ value }}
    - user: root
    - require:
      - pkg: scheduling-cron
{%- endfor %}

{%- for name, job in scheduling.get("jobs", {}) | dictsort %}
scheduling-job-{{ name }}:
  cron.present:
    - name: {{ job.command | yaml_dquote }}
    - identifier: {{ name }}
    - user: {{ job.user }}
    {%- for key in ("minute", "hour", "daymonth", "month", "dayweek", "comment", "special", "commented") if job[key] is defined %}
    - {{ key }}: {{ job[key] | json }}
    {%- endfor %}
    - require:
      - pkg: scheduling-cron
      {%- if job.user in scheduling.get("users", []) %}
      - user: scheduling-user-{{ job.user }}
      {%- endif %}
{%- endfor %}

{%- for name, job in scheduling.get("absent", {}) | dictsort %}
scheduling-job-{{ name }}-absent:
  cron.absent:
    - identifier: {{ name }}
    - name: {{ name }}
    - user: {{ job.user }}
    - require:
      - pkg: scheduling-cron
{%- endfor %}

{%- for name, line in scheduling.get("files", {}) | dictsort %}
scheduling-file-{{ name }}:
  file.managed:
    - name: /etc/cron.d/{{ name }}
    - contents:
      - SHELL=/bin/sh
      - {{ line | yaml_dquote }}
    - mode: '0644'
    - require:
      - pkg: scheduling-cron
{%- endfor %}
