# What differs between the clusters, and defaults of brine for all of them.
platform:
  title: The platform of {{ grains.id }}
  replicas: {{ {'east': 3, 'north': 2}.get(grains.id, 1) }}

brine:
  timeout: 20s    # a small platform
