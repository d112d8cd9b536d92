//go:build ignore

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"example.com/probes/probe"
)

// sign calls the bound plugin as the framework does, and compares the result with the framework's signature of the pod.
func (d *driver) sign(p *corev1.Pod) (part interface{}, code string) {
	signature := call(d.fw.MethodByName("SignPod"), []interface{}{d.ctx, p, false}, nil)[0]
	probe.Last.Notes()
	out := call(d.bound.Elem().MethodByName("SignPod"), []interface{}{d.ctx, p}, nil)
	fragments, result := out[0].Interface().([]fwk.SignFragment), out[1].Interface().(*status)
	if signed := signature.Len() > 0; signed != result.IsSuccess() || signed != (len(fragments) == 1) {
		panic(fmt.Sprintf("pod %s has the signature %s and %d fragments", p.Name, signature.Bytes(), len(fragments)))
	}
	for _, f := range fragments {
		part = f.Value
	}
	return part, result.Code().String()
}
