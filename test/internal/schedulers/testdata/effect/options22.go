package main

import "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

// newOptions completes the options. From 1.23 on Setup does so itself.
func newOptions() (*options.Options, error) {
	opts, err := options.NewOptions()
	if err != nil {
		return nil, err
	}
	sets := opts.Flags()
	return opts, opts.Complete(&sets)
}
