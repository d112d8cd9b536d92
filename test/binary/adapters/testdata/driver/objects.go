//go:build ignore

package main

import (
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func pod(name string, labels ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), Labels: map[string]string{}}}
	for _, l := range labels {
		p.Labels[l] = ""
	}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("1Mi"), "example.com/gpu": resource.MustParse("2"),
	}}}}
	return p
}

func nodes() []*framework.NodeInfo {
	var infos []*framework.NodeInfo
	for i := 1; i <= 5; i++ {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}
		n.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Mi"), corev1.ResourcePods: resource.MustParse("110"),
			corev1.ResourceEphemeralStorage: resource.MustParse("1Gi"), "example.com/gpu": resource.MustParse("8"),
		}
		var pods []*corev1.Pod
		for j := 0; j < i; j++ {
			p := pod(fmt.Sprintf("p%d-%d", i, j))
			p.Spec.NodeName = n.Name
			pods = append(pods, p)
		}
		info := framework.NewNodeInfo(pods...)
		info.SetNode(n)
		infos = append(infos, info)
	}
	return infos
}

// newPodInfo uses reflection because framework.NewPodInfo also returns an error from 1.26 on.
func newPodInfo(p *corev1.Pod) *framework.PodInfo {
	return reflect.ValueOf(framework.NewPodInfo).Call([]reflect.Value{reflect.ValueOf(p)})[0].Interface().(*framework.PodInfo)
}

// queued sets the fields that all releases have.
func queued(p *corev1.Pod, since time.Time, attempts int) *framework.QueuedPodInfo {
	q := &framework.QueuedPodInfo{}
	v := reflect.ValueOf(q).Elem()
	if info := v.FieldByName("PodInfo"); info.IsValid() {
		info.Set(reflect.ValueOf(newPodInfo(p)))
	} else {
		v.FieldByName("Pod").Set(reflect.ValueOf(p))
	}
	v.FieldByName("Timestamp").Set(reflect.ValueOf(since))
	v.FieldByName("Attempts").SetInt(int64(attempts))
	return q
}
