{%- from "openssh/map.jinja" import openssh with context %}

openssh:
  pkg.installed:
    - pkgs:
      - {{ openssh.server }}
      - {{ openssh.client }}
  service.running:
    - name: {{ openssh.service }}
    - enable: true
    - reload: true
    - require:
      - pkg: openssh

openssh-banner:
  file.managed:
    - name: {{ openssh.banner_file }}
    - contents_pillar: openssh:banner
    - mode: '0644'

openssh-config:
  file.managed:
    - name: {{ openssh.config_file }}
    - source: salt://openssh/files/sshd_config.jinja
    - template: jinja
    - user: root
    - group: root
    - mode: '0600'
    - check_cmd: /usr/sbin/sshd -t -f
    - context:
        openssh: {{ openssh | json }}
    - require:
      - pkg: openssh
      - file: openssh-banner
    - watch_in:
      - service: openssh
