include:
  - .deploy
  - .activate
  - .report
