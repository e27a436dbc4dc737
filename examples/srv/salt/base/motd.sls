{% from 'base/map.jinja' import root %}
motd:
  file.managed:
    - name: {{ root }}/etc/motd
    - source: salt://base/files/motd.jinja
    - template: jinja
    - mode: '0644'
    - makedirs: True
