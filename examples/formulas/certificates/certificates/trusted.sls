{%- from "certificates/map.jinja" import certificates, authority_file with context %}

include:
  - certificates.authority

certificates-trusted-directory:
  file.directory:
    - name: /usr/local/share/ca-certificates/site
    - makedirs: true

certificates-trusted-authority:
  file.copy:
    - name: /usr/local/share/ca-certificates/site/authority.crt
    - source: {{ authority_file }}
    - require:
      - x509: certificates-authority
      - file: certificates-trusted-directory

{%- for name in certificates.trusted %}
certificates-trusted-{{ name }}:
  file.managed:
    - name: {{ certificates.directory }}/{{ name }}.pem
    - contents_pillar: certificates:trusted:{{ name }}
    - require:
      - file: certificates-directory
{%- endfor %}

certificates-trusted-updated:
  cmd.run:
    - name: update-ca-certificates
    - onchanges:
      - file: certificates-trusted-authority
