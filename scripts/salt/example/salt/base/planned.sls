{#- What people approve: it stays beside the inventory for a day. -#}
Plan the platform:
  brine.planned:
    - inventory: kube-system/platform
    - source: salt://platform/
    - saltenv: platform-{{ pillar.platform.version }}
