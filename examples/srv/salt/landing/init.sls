# The page alone, for hosts that are a plain directory tree: no package, no service, no owner but who runs the minion.
{% from 'base/map.jinja' import root %}
landing-page:
  file.managed:
    - name: {{ root }}{{ pillar['web']['root'] }}/index.html
    - source: salt://web/files/index.html.jinja
    - template: jinja
    - mode: '0644'
    - makedirs: True
