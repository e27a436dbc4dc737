{% from 'base/map.jinja' import root %}
{% set cron = salt['pillar.get']('cron', {}) %}
# Old temporary files go away every night.
cron-tidy:
  file.managed:
    - name: {{ root }}/etc/cron.d/tidy
    - mode: '0644'
    - makedirs: True
    - contents: |
        # m h dom mon dow user command
        {{ cron.get('minute', 17) }} {{ cron.get('hour', 3) }} * * * root find /var/tmp -xdev -type f -mtime +{{ cron.get('keep_days', 14) }} -delete
