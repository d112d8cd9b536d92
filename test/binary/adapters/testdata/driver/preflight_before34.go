//go:build ignore

package main

import (
	corev1 "k8s.io/api/core/v1"

	"example.com/probes/probe"
)

// preFlight calls the probe: the framework does not, and calls PreBind.
func (d *driver) preFlight(p *corev1.Pod) {
	result := probe.Last.PreBindPreFlight(d.ctx, nil, p, "n2")
	d.flush("preflight %s: %s %s", p.Name, result.Code().String(), short(result.Reasons()))
}
