package deploy

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pmk-sched/pmk-sched/internal/deploy/manifest"
	"github.com/pmk-sched/pmk-sched/internal/deploy/monitoring"
)

// RenderMonitoring returns the objects that monitor the scheduler of the plan with Prometheus and Grafana as YAML documents, and warnings.
func RenderMonitoring(plan *Plan) (text []byte, warnings []string, err error) {
	deployment, container, err := schedulerOf(plan.Objects)
	if err != nil {
		return nil, nil, fmt.Errorf("monitor scheduler %s: %w", plan.Name, err)
	}
	if probe := container.ReadinessProbe; probe != nil && probe.HTTPGet != nil && isLoopback(probe.HTTPGet.Host) {
		warnings = append(warnings, fmt.Sprintf("scheduler %s serves metrics on %s only, where Prometheus cannot scrape them: remove --bind-address", plan.Name, probe.HTTPGet.Host))
	}
	objects, err := monitoring.Objects(monitoring.Scheduler{
		Name: plan.Name, Namespace: plan.Namespace, Release: plan.Release,
		PodLabels: deployment.Spec.Selector.MatchLabels, PortName: container.Ports[0].Name,
		Certificate: plan.Scheduler.Credentials.Mode != CredentialsServiceAccount,
	})
	if err != nil {
		return nil, nil, err
	}
	text, err = manifest.YAML(objects)
	return text, warnings, err
}

// schedulerOf returns the Deployment among the objects of a scheduler, and its scheduler container, which has a port.
func schedulerOf(objects []*unstructured.Unstructured) (*appsv1.Deployment, *corev1.Container, error) {
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	if at < 0 {
		return nil, nil, errors.New("no Deployment among its objects")
	}
	var d appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[at].Object, &d); err != nil {
		return nil, nil, fmt.Errorf("read Deployment/%s: %w", objects[at].GetName(), err)
	}
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; c.Name == manifest.ContainerName && len(c.Ports) > 0 {
			return &d, c, nil
		}
	}
	return nil, nil, fmt.Errorf("find the port of Deployment/%s: no container %s with a port", d.Name, manifest.ContainerName)
}
