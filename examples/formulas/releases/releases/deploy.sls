{%- from tpldir ~ "/map.jinja" import releases, apps with context %}

releases-root:
  file.directory:
    - name: {{ releases.root }}
    - makedirs: true

{%- for app, settings in apps | dictsort %}
{%-   for version in settings.kept %}
{%-     set path = [releases.root, app, version] | join("/") %}
{{ app }}-{{ version }}:
  file.directory:
    - name: {{ path }}
    - makedirs: true
    - require:
      - releases-root

{{ app }}-{{ version }}-manifest:
  file.managed:
    - name: {{ path }}/manifest.json
    - contents: {{ {"app": app, "version": version, "flavour": releases.flavour, "settings": settings.settings} | tojson | yaml_dquote }}
    - mode: {{ releases.mode | yaml_squote }}
    - require:
      - file: {{ app }}-{{ version }}

{{ app }}-{{ version }}-script:
  file.managed:
    - name: {{ path }}/run
    - source: salt://releases/files/run.jinja
    - template: jinja
    - mode: {{ releases.mode | yaml_squote }}
    - defaults:
        interpreter: {{ releases.interpreter }}
    - context:
        app: {{ app }}
        version: {{ version | yaml_dquote }}
    - require:
      - file: {{ app }}-{{ version }}
{%-   endfor %}
{%- endfor %}
