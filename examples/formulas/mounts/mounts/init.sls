{#- Directories below the mount points first, then what is mounted, then what is only written down. #}
include:
  - .directories
  - .mounted
  - .tmpfiles
