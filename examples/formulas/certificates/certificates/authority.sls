{%- from "certificates/map.jinja" import certificates, authority_key, authority_file with context %}

certificates-packages:
  pkg.installed:
    - pkgs:
      - openssl
      - ssl-cert

certificates-directory:
  file.directory:
    - name: {{ certificates.directory }}
    - makedirs: true
    - group: {{ certificates.group }}
    - mode: '0750'
    - require:
      - pkg: certificates-packages

certificates-authority-key:
  x509.private_key_managed:
    - name: {{ authority_key }}
    - algo: ec
    - keysize: 256
    - mode: '0400'
    - require:
      - file: certificates-directory

certificates-authority:
  x509.certificate_managed:
    - name: {{ authority_file }}
    - signing_private_key: {{ authority_key }}
    - CN: {{ certificates.authority.get("common_name", grains["id"]) }}
    - basicConstraints: critical, CA:true
    - keyUsage: critical, cRLSign, keyCertSign
    - subjectKeyIdentifier: hash
    - authorityKeyIdentifier: keyid:always,issuer
    - days_valid: {{ certificates.authority.get("days_valid", 3650) }}
    - days_remaining: 30
    - mode: '0644'
    - require:
      - x509: certificates-authority-key
