{#- One cluster: the minion that this runs on reaches its API server. -#}
{%- set platform = pillar.platform %}

Deploy the platform:
  brine.applied:
    - inventory: kube-system/platform
    - source: salt://platform/
    - saltenv: platform-{{ platform.version }}
    {%- if platform.approved is defined %}
    - plan: secret
    - plan_digest: {{ platform.approved.get(grains.id, 'none') }}
    {%- endif %}

Back to the last good revision:
  brine.rolled_back:
    - inventory: kube-system/platform
    - onfail:
      - brine: Deploy the platform
