package render

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/versions"
)

// Monitored describes a scheduler that takes part in leader election.
type Monitored struct {
	// Name is the name of the scheduler and its lease; Namespace has its pods.
	Name, Namespace string
	// Release is the scheduler's Kubernetes release.
	Release versions.Release
	// PodLabels select the scheduler's pods.
	PodLabels map[string]string
	// PortName is the name of the container port that serves metrics over HTTPS.
	PortName string
	// Certificate is set if the scheduler authenticates with a client certificate, which expires.
	Certificate bool
	// Route is set if new pods are routed to the scheduler.
	Route bool
}

// Monitoring returns the objects with which Prometheus and Grafana watch one scheduler, with the
// metric names of its release, in the order in which to apply them: the account that reads metrics
// and its permission, the Service, the ServiceMonitor, the rules, the dashboard. They do not have
// the labels by which pmk-sched recognizes a scheduler's objects, so that a deployment does not
// remove them.
func Monitoring(s Monitored) ([]*unstructured.Unstructured, error) {
	rules, err := versions.Select(s.Release)
	if err != nil {
		return nil, fmt.Errorf("build monitoring of scheduler %s: %w", s.Name, err)
	}
	m := monitored{s, rules.Metrics}
	dashboard, err := json.MarshalIndent(m.dashboard(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("build dashboard of scheduler %s: %w", s.Name, err)
	}
	return []*unstructured.Unstructured{
		m.account(), m.token(), m.role(), m.roleBinding(), m.service(), m.serviceMonitor(), m.prometheusRule(),
		m.dashboardMap(dashboard),
	}, nil
}

// monitored is a scheduler with its release's metrics.
type monitored struct {
	Monitored
	metrics versions.Metrics
}

type fields = map[string]any

// objectName names every object, and the job in Prometheus: the operator uses the Service's name.
func (m monitored) objectName() string { return m.Name + "-metrics" }

// labels select the Service.
func (m monitored) labels() fields {
	return fields{
		"app.kubernetes.io/component": "metrics",
		"app.kubernetes.io/instance":  m.Name,
		"app.kubernetes.io/part-of":   "pmk-sched",
	}
}

// object returns an object in the scheduler's namespace with the given fields.
func (m monitored) object(apiVersion, kind string, content fields) *unstructured.Unstructured {
	content["apiVersion"], content["kind"] = apiVersion, kind
	content["metadata"] = fields{"name": m.objectName(), "namespace": m.Namespace, "labels": m.labels()}
	return &unstructured.Unstructured{Object: content}
}

// clusterObject returns a cluster-scoped object.
func (m monitored) clusterObject(apiVersion, kind string, content fields) *unstructured.Unstructured {
	o := m.object(apiVersion, kind, content)
	o.SetNamespace("")
	return o
}
