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
	if _, err := scheduler.Register(registry, prometheus.NewCounter(prometheus.CounterOpts{Name: "pods_total", Help: "Pods."})); err != nil {
		t.Fatal(err)
	}
	if _, err := scheduler.Register(registry, prometheus.NewCounter(prometheus.CounterOpts{Name: "pods_total", Help: "Others."})); err == nil {
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
