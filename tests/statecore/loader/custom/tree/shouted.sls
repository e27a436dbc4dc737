#!jinja|shouting -loud
# {{ grains['room'] }}
first = {{ salt['inventory.get']('a1') }}
