{%- from "database/map.jinja" import database with context %}

include:
  - database.server

{%- for name, user in database.users | dictsort %}
database-user-{{ name }}:
  postgres_user.present:
    - name: {{ name }}
    {%- for key in ("password", "login", "createdb", "superuser") if user[key] is defined %}
    - {{ key }}: {{ user[key] | json }}
    {%- endfor %}
    - user: {{ database.superuser }}
    - require:
      - service: database-service
{%- endfor %}

{%- for name, settings in database.databases | dictsort %}
database-database-{{ name }}:
  postgres_database.present:
    - name: {{ name }}
    {%- if settings.owner is defined %}
    - owner: {{ settings.owner }}
    - require:
      - postgres_user: database-user-{{ settings.owner }}
    {%- else %}
    - require:
      - service: database-service
    {%- endif %}
    - user: {{ database.superuser }}

{%- for extension in settings.get("extensions", []) %}
database-database-{{ name }}-extension-{{ extension }}:
  postgres_extension.present:
    - name: {{ extension }}
    - maintenance_db: {{ name }}
    - user: {{ database.superuser }}
    - require:
      - postgres_database: database-database-{{ name }}
{%- endfor %}
{%- endfor %}

{%- for name, settings in database.schemas | dictsort %}
database-schema-{{ name }}:
  postgres_schema.present:
    - name: {{ name }}
    - dbname: {{ settings.dbname }}
    - owner: {{ settings.owner }}
    - user: {{ database.superuser }}
    - require:
      - postgres_database: database-database-{{ settings.dbname }}
{%- endfor %}

{%- for id, settings in database.privileges | dictsort %}
database-privilege-{{ id }}:
  postgres_privileges.present:
    {%- for key, value in settings | dictsort %}
    - {{ key }}: {{ value | json }}
    {%- endfor %}
    - user: {{ database.superuser }}
    - require:
      - sls: database.server
      - postgres_user: database-user-{{ settings.name }}
      {%- if settings.object_type == "database" %}
      - postgres_database: database-database-{{ settings.object_name }}
      {%- endif %}
{%- endfor %}

{%- for name in database.absent.databases %}
database-database-{{ name }}-absent:
  postgres_database.absent:
    - name: {{ name }}
    - user: {{ database.superuser }}
    - require: [{service: database-service}]
{%- endfor %}

{%- for name in database.absent.users %}
database-user-{{ name }}-absent:
  postgres_user.absent:
    - name: {{ name }}
    - user: {{ database.superuser }}
    - require: [{service: database-service}]
{%- endfor %}
