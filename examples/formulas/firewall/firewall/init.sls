{%- from "firewall/map.jinja" import firewall with context %}

include:
  - firewall.sysctl

firewall-packages:
  pkg.installed:
    - pkgs: {{ firewall.packages | json }}

firewall-established:
  iptables.append:
    - table: filter
    - chain: INPUT
    - match: conntrack
    - ctstate: RELATED,ESTABLISHED
    - jump: ACCEPT
    - save: true
    - require:
      - pkg: firewall-packages

firewall-loopback:
  iptables.append:
    - chain: INPUT
    - in-interface: lo
    - jump: ACCEPT
    - save: true
    - require:
      - pkg: firewall-packages

firewall-chain:
  iptables.chain_present:
    - name: services
    - require:
      - pkg: firewall-packages

firewall-jump:
  iptables.append:
    - chain: INPUT
    - jump: services
    - comment: what is offered
    - save: true
    - require:
      - iptables: firewall-chain

{%- for name, service in firewall.services | dictsort %}
{%-   for source in service.get("sources", ["0.0.0.0/0"]) %}
firewall-service-{{ name }}-{{ source }}:
  iptables.append:
    - chain: services
    - jump: ACCEPT
    {%- if source != "0.0.0.0/0" %}
    - source: {{ source }}
    {%- endif %}
    - proto: {{ service.get("proto", "tcp") }}
    - dport: {{ service.port }}
    - comment: {{ name }}
    - save: true
    - require:
      - iptables: firewall-chain
{%-   endfor %}
{%- endfor %}

{%- for address in firewall.blocked %}
firewall-blocked-{{ address }}:
  iptables.insert:
    - position: 1
    - chain: INPUT
    - source: {{ address }}
    - jump: DROP
    - save: true
    - require:
      - iptables: firewall-established
{%- endfor %}

{%- for rule in firewall.nat %}
firewall-nat-{{ loop.index }}:
  iptables.append:
    - table: nat
    - chain: POSTROUTING
    - source: {{ rule.source }}
    - out-interface: {{ rule.interface }}
    - jump: MASQUERADE
    - save: true
    - require:
      - pkg: firewall-packages
{%- endfor %}

{%- if firewall.strict %}
firewall-policy:
  iptables.set_policy:
    - chain: INPUT
    - policy: DROP
    - save: true
    - require:
      - iptables: firewall-established
      - iptables: firewall-jump
{%- endif %}

firewall-old-rule:
  iptables.delete:
    - chain: INPUT
    - proto: tcp
    - dport: 23
    - jump: ACCEPT
    - save: true
    - require:
      - pkg: firewall-packages

firewall-service:
  service.enabled:
    - name: {{ firewall.service }}
    - require:
      - pkg: firewall-packages
