include:
  - .groups
  - .users
  {%- if salt["pillar.get"]("accounts:sudo", {}) %}
  - .sudo
  {%- endif %}
