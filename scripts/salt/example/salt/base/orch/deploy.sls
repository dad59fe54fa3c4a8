{#- Two clusters at a time. After a failure no further batch begins. -#}
Deploy {{ pillar.deploy.version }}:
  salt.state:
    - tgt: 'roles:bootstrap'
    - tgt_type: grain
    - sls: platform
    - pillar: {{ {'platform': pillar.deploy} | tojson }}
    - batch: 2
    - failhard: True
