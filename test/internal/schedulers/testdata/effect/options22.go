package main

import "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

// newOptions does what Setup does itself from 1.23 on.
func newOptions() (*options.Options, error) {
	opts, err := options.NewOptions()
	if err != nil {
		return nil, err
	}
	sets := opts.Flags()
	return opts, opts.Complete(&sets)
}
