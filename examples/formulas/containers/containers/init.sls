include:
  - .engine
  - .images
  - .services
