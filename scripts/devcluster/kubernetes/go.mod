// Built with -modfile=VERSION.mod only. This file keeps the directory out of the
// module around it.
module brine/scripts/devcluster/kubernetes

go 1.26.0
