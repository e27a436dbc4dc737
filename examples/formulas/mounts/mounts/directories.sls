{%- for path, settings in salt["pillar.get"]("mounts:directories", {}) | dictsort %}
mounts-directory-{{ path }}:
  file.directory:
    - name: {{ path }}
    - makedirs: true
    - user: {{ settings.get("user", "root") }}
    - group: {{ settings.get("group", settings.get("user", "root")) }}
    - mode: {{ settings.get("mode", "0755") | yaml_squote }}
    - require_in:
      - test: mounts-directories-made
{%- endfor %}

mounts-directories-made:
  test.nop: []
