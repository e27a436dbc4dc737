// The definitions of PodMonitor and PrometheusRule, which components/monitoring needs: files of this module, none of its code.
module saltern.example/cluster/crds

go 1.25.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
