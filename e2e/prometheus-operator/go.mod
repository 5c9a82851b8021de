// The custom resources of the Prometheus operator, pinned. Only its files are read; nothing is built.
module corridoros.io/e2e/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
