# A web server with one site. The service restarts when its package or its configuration changes; the page itself is only
# a file that it serves.
{% set web = pillar['web'] %}
nginx:
  pkg.installed:
    - name: nginx-light
  service.running:
    - name: nginx
    - enable: True
    - watch:
      - pkg: nginx
      - file: site

site:
  file.managed:
    - name: /etc/nginx/sites-available/default
    - source: salt://web/files/site.conf.jinja
    - template: jinja
    - user: root
    - group: root
    - mode: '0644'
    - require:
      - pkg: nginx

page:
  file.managed:
    - name: {{ web['root'] }}/index.html
    - source: salt://web/files/index.html.jinja
    - template: jinja
    - user: root
    - group: root
    - mode: '0644'
    - makedirs: True
    - require:
      - pkg: nginx
