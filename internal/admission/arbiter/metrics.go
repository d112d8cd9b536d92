package arbiter

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct{ decisions, refused *prometheus.CounterVec }

func newMetrics(registry prometheus.Registerer, a *Arbiter) (*metrics, error) {
	const namespace = "pmk_sched_arbiter"
	m := &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "decisions_total", Help: "Bindings by result.",
		}, []string{"result"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "refused_total", Help: "Refused bindings by the resource that the node lacks.",
		}, []string{"resource"}),
	}
	collectors := []prometheus.Collector{m.decisions, m.refused, gauge(namespace, "leading",
		"1 if the replica is the one that decides.", func() float64 {
			if since, _ := a.leader(); since.IsZero() {
				return 0
			}
			return 1
		})}
	for name, count := range map[string]func(nodes, pods, admitted int) int{
		"nodes":    func(nodes, _, _ int) int { return nodes },
		"pods":     func(_, pods, _ int) int { return pods },
		"admitted": func(_, _, admitted int) int { return admitted },
	} {
		collectors = append(collectors, gauge(namespace, "ledger_"+name, map[string]string{
			"nodes": "Nodes that the ledger knows.", "pods": "Pods that the ledger knows.",
			"admitted": "Admitted bindings that were not seen yet.",
		}[name], func() float64 { return float64(count(a.ledger.Counts())) }))
	}
	var failed []error
	for _, c := range collectors {
		failed = append(failed, registry.Register(c))
	}
	if err := errors.Join(failed...); err != nil {
		return nil, fmt.Errorf("register the metrics of the arbiter: %w", err)
	}
	return m, nil
}

func gauge(namespace, name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, value)
}
