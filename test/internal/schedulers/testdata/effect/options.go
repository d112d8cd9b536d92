package main

import "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

func newOptions() (*options.Options, error) { return options.NewOptions(), nil }
