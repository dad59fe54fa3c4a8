base:
  '*':
    - platform
