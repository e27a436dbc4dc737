owner: the shop team

web:
  title: The shop
