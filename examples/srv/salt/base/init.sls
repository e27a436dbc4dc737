# What every managed host has.
include:
  - base.motd
  - base.sysctl
  - base.cron
{%- if grains.get('userland') == 'debian' %}
  - base.users
{%- endif %}
