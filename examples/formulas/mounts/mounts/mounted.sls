include:
  - .directories

{%- for path, settings in salt["pillar.get"]("mounts:mounts", {}) | dictsort %}
mounts-{{ path }}:
  mount.mounted:
    - name: {{ path }}
    - device: {{ settings.device }}
    - fstype: {{ settings.fstype }}
    - opts: {{ settings.opts | json }}
    - mkmnt: true
    - persist: {{ settings.get("persist", true) }}
    - require:
      - test: mounts-directories-made
{%- endfor %}

{%- for path, settings in salt["pillar.get"]("mounts:fstab", {}) | dictsort %}
mounts-fstab-{{ path }}:
  mount.fstab_present:
    - name: {{ settings.fs_file }}
    - fs_file: {{ path }}
    - fs_vfstype: {{ settings.fs_vfstype }}
    - fs_mntops: {{ settings.fs_mntops }}
    - fs_freq: 0
    - fs_passno: 0
    - mount: false
{%- endfor %}

{%- for path, settings in salt["pillar.get"]("mounts:absent", {}) | dictsort %}
mounts-{{ path }}-absent:
  mount.unmounted:
    - name: {{ path }}
    - device: {{ settings.device }}
    - persist: true
{%- endfor %}
