{%- from "openssh/map.jinja" import openssh with context %}

include:
  - openssh.server

{%- for host, settings in openssh.known_hosts | dictsort %}
openssh-known-host-{{ host }}:
  ssh_known_hosts.present:
    - name: {{ host }}
    - enc: {{ settings.enc }}
    - key: {{ settings.key }}
    - hash_known_hosts: false
    - require:
      - pkg: openssh
{%- endfor %}

openssh-known-host-old:
  ssh_known_hosts.absent:
    - name: old.example.org
    - require:
      - pkg: openssh
