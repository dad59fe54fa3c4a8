{#- A plan for each cluster. Run again, it changes nothing where the plan still holds. -#}
Plan {{ pillar.deploy.version }}:
  salt.state:
    - tgt: 'roles:bootstrap'
    - tgt_type: grain
    - sls: planned
    - pillar: {{ {'platform': pillar.deploy} | tojson }}
