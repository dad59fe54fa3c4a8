"""
The parts that brine.py and brine_object.py share. Salt's loader passes over files whose
names begin with "_", while sync_modules, salt-ssh and the extension bring them along. They
are read by their paths with each load of a module, so that they are always of its version.
"""

import importlib.util
import os

_FOLDER = os.path.dirname(os.path.abspath(__file__))


class Parts(object):
    """The parts, each of which has this as ``brine``, and Salt's dunders of the module that has them."""

    def __init__(self, dunders):
        self._dunders = dunders
        for name in ("call", "events", "rendering", "returning", "running"):
            spec = importlib.util.spec_from_file_location("{}._brine_{}".format(dunders["__name__"], name), os.path.join(_FOLDER, "_brine_{}.py".format(name)))
            module = importlib.util.module_from_spec(spec)
            module.brine = self
            spec.loader.exec_module(module)
            setattr(self, name, module)

    opts = property(lambda self: self._dunders["__opts__"])
    salt = property(lambda self: self._dunders["__salt__"])
    context = property(lambda self: self._dunders["__context__"])
    pillar = property(lambda self: self._dunders.get("__pillar__"))
    grains = property(lambda self: self._dunders.get("__grains__"))
