owner: the blog team

web:
  title: The blog
