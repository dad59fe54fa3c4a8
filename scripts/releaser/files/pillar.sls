# Defaults for the states and functions of brine, for every flag it has.
# The modules are in /usr/share/salt-brine: add that to file_roots, or install
# the Python package saltext-brine into Salt's Python.
brine:
  binary: /usr/bin/brine
  kubeconfig: /etc/kubernetes/admin.conf
  inventory: kube-system/platform
  timeout: 20m
