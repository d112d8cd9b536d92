//go:build ignore

package main

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// helps calls the hint as the queue does.
func (d *driver) helps(p *corev1.Pod, node *corev1.Node) bool {
	hint := d.events().Index(0).FieldByName("QueueingHintFn")
	none := reflect.Zero(hint.Type().In(2))
	out := hint.Call([]reflect.Value{reflect.ValueOf(klog.Background()), reflect.ValueOf(p), none, reflect.ValueOf(node)})
	if !out[1].IsNil() {
		panic(out[1].Interface())
	}
	return fmt.Sprint(out[0].Interface()) == "Queue"
}
