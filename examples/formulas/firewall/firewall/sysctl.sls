{%- from "firewall/map.jinja" import firewall with context %}

{%- for name, value in firewall.sysctl | dictsort %}
{{ name }}:
  sysctl.present:
    - value: {{ value }}
    - config: /etc/sysctl.d/60-firewall.conf
{%- else %}
firewall-sysctl-none:
  test.nop: []
{%- endfor %}
