Remove the platform:
  brine.absent:
    - inventory: kube-system/platform
