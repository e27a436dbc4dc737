{#- Everything: package, configuration, sites, service. -#}
include:
  - .package
  - .config
  - .sites
  - .service
