//go:build ignore

package main

import (
	corev1 "k8s.io/api/core/v1"

	"example.com/probes/probe"
)

// helps calls the probe: the framework has no hint to call, and retries the pod.
func (d *driver) helps(p *corev1.Pod, node *corev1.Node) bool {
	if hint := d.events().Index(0).FieldByName("QueueingHintFn"); hint.IsValid() && !hint.IsNil() {
		panic("a hint is bound")
	}
	return probe.Last.EventsToRegister()[0].Helps(p, nil, node)
}
