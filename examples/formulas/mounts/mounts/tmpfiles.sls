{%- for name, line in salt["pillar.get"]("mounts:tmpfiles", {}) | dictsort %}
mounts-tmpfiles-{{ name }}:
  file.managed:
    - name: /etc/tmpfiles.d/{{ name }}.conf
    - contents: {{ line | yaml_dquote }}
  cmd.run:
    - name: systemd-tmpfiles --create /etc/tmpfiles.d/{{ name }}.conf
    - onchanges:
      - file: mounts-tmpfiles-{{ name }}
{%- else %}
mounts-tmpfiles-none:
  test.nop: []
{%- endfor %}
