package deploy

import (
	"fmt"

	"github.com/pmk-sched/pmk-sched/internal/base/loopback"
	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/render"
)

// RenderMonitoring returns the objects that monitor the plan's scheduler with Prometheus and
// Grafana as YAML documents, and warnings.
func RenderMonitoring(plan *Plan) (text []byte, warnings []string, err error) {
	s := plan.Scheduler
	address, err := s.BindAddress()
	if err != nil {
		return nil, nil, fmt.Errorf("monitor scheduler %s: %w", plan.Name, err)
	}
	if loopback.Is(address) {
		warnings = append(warnings, fmt.Sprintf("scheduler %s serves metrics on %s only, where Prometheus cannot scrape "+
			"them: remove --bind-address", plan.Name, address))
	}
	objects, err := render.Monitoring(render.Monitored{
		Name: plan.Name, Namespace: plan.Namespace, Release: plan.Release,
		PodLabels: s.SelectorLabels(), PortName: manifest.PortName,
		Certificate: s.Credentials.Mode != CredentialsServiceAccount, Route: s.Route != nil,
	})
	if err != nil {
		return nil, nil, err
	}
	text, err = manifest.YAML(objects)
	return text, warnings, err
}
