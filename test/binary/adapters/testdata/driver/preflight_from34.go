//go:build ignore

package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"example.com/probes/probe"
)

// preFlight runs the PreBindPreFlight plugins in a new state, and checks that PreBind is then
// called unless they return Skip.
func (d *driver) preFlight(p *corev1.Pod) {
	original := d.state
	defer func() { d.state = original }()
	d.state = framework.NewCycleState()
	code, reasons, _ := d.run("RunPreBindPreFlights", p, "n2")
	d.flush("preflight %s: %s %s", p.Name, code, short(reasons))
	d.run("RunPreBindPlugins", p, "n2")
	if called := len(probe.Last.Notes()) > 0; called != (code != "Skip") {
		panic("PreBind of " + p.Name + " after " + code)
	}
}
