{%- from tpldir ~ "/map.jinja" import releases with context %}

releases-clean:
  file.absent:
    - name: {{ releases.root }}
