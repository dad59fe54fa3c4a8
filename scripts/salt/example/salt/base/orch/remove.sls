Remove the platform:
  salt.state:
    - tgt: 'roles:bootstrap'
    - tgt_type: grain
    - sls: removed
