//go:build ignore

package main

import (
	"k8s.io/client-go/rest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func moreOptions(kubeconfig *rest.Config) []frameworkruntime.Option {
	return []frameworkruntime.Option{frameworkruntime.WithKubeConfig(kubeconfig)}
}
