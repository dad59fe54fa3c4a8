// What scripts/bench runs; a module of its own, so that brine's stays clean.
module brine/scripts/benchmark

go 1.26.0

require sigs.k8s.io/yaml v1.6.0

require go.yaml.in/yaml/v2 v2.4.5 // indirect
