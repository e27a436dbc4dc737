{% from 'base/map.jinja' import root %}
sysctl:
  file.managed:
    - name: {{ root }}/etc/sysctl.d/60-managed.conf
    - mode: '0644'
    - makedirs: True
    - contents:
{%- for key, value in salt['pillar.get']('sysctl', {}) | dictsort %}
      - {{ key }} = {{ value }}
{%- else %}
      - '# nothing is set'
{%- endfor %}
