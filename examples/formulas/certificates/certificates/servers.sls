{%- from "certificates/map.jinja" import certificates, authority_key, authority_file with context %}

include:
  - certificates.authority

{%- for name, server in certificates.servers | dictsort %}
certificates-server-{{ name }}-key:
  x509.private_key_managed:
    - name: {{ certificates.directory }}/{{ name }}.key
    - algo: rsa
    - keysize: 2048
    - mode: '0640'
    - group: {{ server.get("group", "root") }}
    - require:
      - file: certificates-directory

certificates-server-{{ name }}:
  x509.certificate_managed:
    - name: {{ certificates.directory }}/{{ name }}.crt
    - private_key: {{ certificates.directory }}/{{ name }}.key
    - signing_private_key: {{ authority_key }}
    - signing_cert: {{ authority_file }}
    - CN: {{ name }}
    - keyUsage: critical, digitalSignature, keyEncipherment
    - extendedKeyUsage: serverAuth
    - subjectAltName: {{ server.names | json }}
    - days_valid: {{ server.days_valid }}
    - days_remaining: 30
    - append_certs:
      - {{ authority_file }}
    - require:
      - x509: certificates-authority
      - x509: certificates-server-{{ name }}-key
{%- endfor %}
