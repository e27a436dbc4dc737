{#- The other way round: service, configuration, package. -#}
include:
  - .service.clean
  - .config.clean
  - .package.clean
