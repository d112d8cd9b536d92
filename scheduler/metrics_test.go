package scheduler_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

func TestRegisterReturnsTheCollectorOfAnotherProfile(t *testing.T) {
	registry := prometheus.NewRegistry()
	make := func() prometheus.Collector {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "pods_total", Help: "Pods."})
	}
	first, err := scheduler.Register(registry, make())
	if err != nil {
		t.Fatal(err)
	}
	second, err := scheduler.Register(registry, make())
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Error("the second profile uses another collector than the registered one")
	}
}

func TestRegisterRefusesAConflictingCollector(t *testing.T) {
	registry := prometheus.NewRegistry()
	if _, err := scheduler.Register(registry,
		prometheus.NewCounter(prometheus.CounterOpts{Name: "pods_total", Help: "Pods."})); err != nil {
		t.Fatal(err)
	}
	if _, err := scheduler.Register(registry,
		prometheus.NewCounter(prometheus.CounterOpts{Name: "pods_total", Help: "Others."})); err == nil {
		t.Error("no error")
	}
}

func TestRegisterReturnsTheCollectorWithoutARegistry(t *testing.T) {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "pods_total", Help: "Pods."})
	got, err := scheduler.Register(nil, c)
	if err != nil || got != prometheus.Collector(c) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestMetricsOfProfilesAreShared(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		m := scheduler.NewMetrics(registry, "plugin_")
		m.Counter("pods_total", "Pods.", "result").WithLabelValues("ok").Inc()
		m.Gauge("up", "Up.").WithLabelValues().Set(1)
		m.Histogram("seconds", "Time.", []float64{1}).WithLabelValues().Observe(2)
		if err := m.Err(); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 3 || families[0].GetMetric()[0].GetCounter().GetValue() != 2 {
		t.Errorf("got %v, %v", families, err)
	}
}

func TestMetricsReportTheFirstFailure(t *testing.T) {
	registry := prometheus.NewRegistry()
	scheduler.NewMetrics(registry, "plugin_").Counter("pods_total", "Pods.")
	m := scheduler.NewMetrics(registry, "plugin_")
	m.Gauge("pods_total", "Pods.")
	m.Counter("pods_total", "Others.")
	const want = "register metric plugin_pods_total: a metric of another type has this name"
	if err := m.Err(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
