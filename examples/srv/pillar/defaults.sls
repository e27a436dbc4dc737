owner: the platform team

users:
  deploy:
    uid: 2001
    fullname: Deployment
  oncall:
    uid: 2002
    fullname: Whoever is on call

sysctl:
  net.core.somaxconn: 1024
  vm.swappiness: 10

cron:
  hour: 3
  keep_days: 14

web:
  title: Welcome
  port: 80
  root: /var/www/html
  cache_seconds: 60
