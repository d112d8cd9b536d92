//go:build ignore

package main

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pmk-sched/pmk-sched/scheduler"
)

// sign calls the bound plugin: the framework does not sign pods yet.
func (d *driver) sign(p *corev1.Pod) (part interface{}, code string) {
	out := call(d.bound.Elem().MethodByName("Sign"), []interface{}{d.ctx, p}, nil)
	return out[0].Interface(), out[1].Interface().(*scheduler.Status).Code().String()
}
